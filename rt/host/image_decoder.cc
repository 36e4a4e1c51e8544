// ImageDecoder: the formats' libraries lie in libge_pictures.so (abi/picture.h), which is loaded
// when a model first decodes a picture, from beside this object, from ../lib beside it, or where
// the system looks.
#include <dlfcn.h>

#include <cstring>

#include "abi/picture.h"
#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

struct Decoder {
  ge_decode_picture_fn* decode = nullptr;
  ge_free_picture_fn* free = nullptr;
  std::string why;  // it is not there
};

// By whole paths first: a run path counts for the direct caller of dlopen alone, and sanitizers
// step in between.
void* Open() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&Open), &self) != 0) {
    const std::string file = self.dli_fname;
    const size_t slash = file.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash);
    for (const char* place : {"/", "/../lib/", "/../lib64/"}) {
      void* object = dlopen((folder + place + GE_PICTURE_OBJECT).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (object != nullptr) return object;
    }
  }
  return dlopen(GE_PICTURE_OBJECT, RTLD_NOW | RTLD_LOCAL);
}

Decoder Load() {
  Decoder d;
  // Stays loaded to the end: its libraries register what they do not take back.
  void* object = Open();
  if (object != nullptr) {
    d.decode = reinterpret_cast<ge_decode_picture_fn*>(dlsym(object, GE_DECODE_PICTURE));
    d.free = reinterpret_cast<ge_free_picture_fn*>(dlsym(object, GE_FREE_PICTURE));
  }
  if (d.decode == nullptr || d.free == nullptr) {
    const char* reason = dlerror();
    d.why = reason != nullptr ? reason : "it lacks " GE_DECODE_PICTURE;
  }
  return d;
}

Status ImageDecoder(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  HostTensor file;
  GE_TRY(TensorIn(call, 0, &file));
  GE_TRY(CheckRank(file, 1, "the encoded picture"));
  if (TypeOf(file) != DType::kU8) return Invalid("the encoded picture must be bytes (u8)");
  static const Decoder decoder = Load();
  if (!decoder.why.empty())
    return Error(Code::kNotFound, "pictures are decoded by " GE_PICTURE_OBJECT ": " + decoder.why);
  const std::string format = call.attrs.Str("pixel_format", "RGB");
  const ge_picture_order order = format == "Grayscale" ? GE_PICTURE_GREY
                                 : format == "BGR"     ? GE_PICTURE_BGR
                                                       : GE_PICTURE_RGB;
  ge_picture picture;
  if (const char* why = decoder.decode(file.data, Count(file.dims), order, &picture))
    return Invalid("the picture cannot be decoded: " + std::string(why));
  const Shape dims = {picture.height, picture.width, order == GE_PICTURE_GREY ? 1 : 3};
  call.sizes.assign(dims.begin(), dims.begin() + 2);
  void* y = nullptr;
  Status status = Claim(call, 0, dims, &y);
  if (y != nullptr) std::memcpy(y, picture.pixels, static_cast<size_t>(Count(dims)));
  decoder.free(&picture);
  return status;
}

[[maybe_unused]] const bool kRegistered = RegisterHost("ImageDecoder", ImageDecoder);

}  // namespace
}  // namespace ge::rt
