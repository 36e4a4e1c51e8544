# The runtime library for another machine, and the program that runs a model with it:
#   cmake -B DIR -DGE_RUNTIME_ONLY=ON -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ ...
set(sources "")
foreach(folder base abi om rt)
  file(GLOB_RECURSE part CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cc ${CMAKE_SOURCE_DIR}/${folder}/*.c)
  list(APPEND sources ${part})
endforeach()
list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
add_library(ge_runtime SHARED ${sources} ${CMAKE_SOURCE_DIR}/api/c/ge_c.cc)
target_compile_options(ge_runtime PRIVATE -ffunction-sections -fdata-sections -fvisibility=hidden -fno-exceptions -O2)
target_link_libraries(ge_runtime PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(ge_runtime PRIVATE -Wl,--gc-sections -Wl,--no-undefined ${GE_EXPORTS})
add_executable(run_model ${CMAKE_SOURCE_DIR}/tests/cross/run_model.c)
target_link_libraries(run_model PRIVATE ge_runtime)
