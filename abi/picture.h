// What the runtime asks of libge_pictures.so, which decodes pictures. The libraries of the formats
// are linked into that object alone: it is loaded when a model first decodes a picture.
#ifndef GE_ABI_PICTURE_H_
#define GE_ABI_PICTURE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { GE_PICTURE_RGB = 0, GE_PICTURE_BGR = 1, GE_PICTURE_GREY = 2 } ge_picture_order;

typedef struct {
  uint8_t* pixels;  // height rows of width pixels of 3 bytes (grey: 1)
  int64_t height, width;
} ge_picture;

// Decodes a file in memory: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP, known by its first bytes.
// 0, and a picture that ge_free_picture frees; or the reason why not, which is valid until the
// thread's next call.
typedef const char* ge_decode_picture_fn(const void* file, int64_t bytes, ge_picture_order order,
                                         ge_picture* picture);
typedef void ge_free_picture_fn(ge_picture* picture);

#define GE_PICTURE_OBJECT "libge_pictures.so"
#define GE_DECODE_PICTURE "ge_decode_picture"
#define GE_FREE_PICTURE "ge_free_picture"

#ifdef __cplusplus
}
#endif

#endif  // GE_ABI_PICTURE_H_
