# The command lines. Each links the whole compiler statically; what ships for running is ge_runtime.
file(GLOB tool_parts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/*.cc)
list(FILTER tool_parts EXCLUDE REGEX "/(atc|ge)\\.cc$|_test\\.cc$")
if(tool_parts)
  add_library(ge_tools OBJECT ${tool_parts})
  target_link_libraries(ge_tools PRIVATE $<BUILD_INTERFACE:fmt::fmt>)
  # stb and CLI11 are header-only; their own warnings are not ours.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/tools/picture.cc PROPERTIES COMPILE_OPTIONS "-Wno-error;-w")
endif()
set_source_files_properties(${CMAKE_SOURCE_DIR}/tools/atc_modes.cc ${CMAKE_SOURCE_DIR}/tools/ge.cc
                            PROPERTIES COMPILE_DEFINITIONS "GE_VERSION=\"${PROJECT_VERSION}\"")
foreach(tool atc ge)
  add_executable(${tool} tools/${tool}.cc $<TARGET_OBJECTS:ge_tools> ${GE_ALL_OBJECTS})
  target_link_libraries(${tool} PRIVATE fmt::fmt Threads::Threads)
  set_target_properties(${tool} PROPERTIES ENABLE_EXPORTS OFF)
  add_dependencies(${tool} ge_pictures)  # loaded, not linked
endforeach()
# The shared library exports only its C face; a C++ program links the runtime statically.
add_executable(ocr examples/ocr.cc tools/picture.cc ${GE_RUNTIME_OBJECTS})
target_link_libraries(ocr PRIVATE Threads::Threads)
