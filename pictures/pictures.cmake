# Pictures in a shared object of their own: the runtime loads it when a model decodes one, and links none
# of these libraries (abi/picture.h).
find_package(JPEG REQUIRED)
find_package(TIFF REQUIRED)
find_library(GE_WEBP webp REQUIRED)
find_library(GE_OPENJPEG openjp2 REQUIRED)
file(GLOB GE_OPENJPEG_INCLUDE /usr/include/openjpeg-2.* /usr/local/include/openjpeg-2.*)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/pictures/*.cc)
add_library(ge_pictures SHARED ${sources})
target_include_directories(ge_pictures SYSTEM PRIVATE ${GE_OPENJPEG_INCLUDE})
target_link_libraries(ge_pictures PRIVATE JPEG::JPEG TIFF::TIFF ${GE_WEBP} ${GE_OPENJPEG})
target_compile_options(ge_pictures PRIVATE -fvisibility=hidden)
target_link_options(ge_pictures PRIVATE -Wl,--no-undefined)
set_source_files_properties(${CMAKE_SOURCE_DIR}/pictures/stb.cc PROPERTIES COMPILE_OPTIONS "-Wno-error;-w")
# A false alarm where strings are inlined (the sanitizers' build): what is set after setjmp is not read after
# a longjmp.
set_source_files_properties(${CMAKE_SOURCE_DIR}/pictures/jpeg.cc PROPERTIES COMPILE_OPTIONS "-Wno-clobbered")
add_dependencies(rt_test ge_pictures)  # loaded, not linked
