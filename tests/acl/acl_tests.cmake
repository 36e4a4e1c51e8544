# Tests of AscendCL: the ABI by a C compiler, call by call, a short fuzz, clients on an installed tree.
add_executable(acl_abi tests/acl/abi.c)
set_target_properties(acl_abi PROPERTIES C_STANDARD 11)
target_link_libraries(acl_abi PRIVATE ascendcl)
add_executable(acl_test tests/acl/contract_test.cc tests/acl/queries_test.cc tests/acl/recording_test.cc
  tests/acl/surface_test.cc tests/acl/surface_runtime_test.cc tests/acl/condition_test.cc tests/acl/jump_test.cc tests/acl/kernel_test.cc)
# Kernels of a client: a shared object that is loaded by name and from memory.
add_library(acl_kernels MODULE tests/acl/kernels.c)
target_compile_definitions(acl_test PRIVATE ACL_KERNELS="$<TARGET_FILE:acl_kernels>")
add_dependencies(acl_test acl_kernels)
target_link_libraries(acl_test PRIVATE ascendcl GTest::gtest GTest::gtest_main Threads::Threads)
add_executable(acl_fuzz tests/acl/fuzz.cc tests/acl/fuzz_queues.cc tests/acl/fuzz_surface.cc)
target_link_libraries(acl_fuzz PRIVATE ascendcl Threads::Threads)
if(GE_SANITIZE MATCHES "undefined")
  target_compile_options(acl_fuzz PRIVATE -fno-sanitize=enum)
endif()
# Its own copy of the runtime, to compare with: the library does not export it.
add_executable(acl_overhead tests/acl/overhead.cc $<TARGET_OBJECTS:ge_acl> ${GE_RUNTIME_OBJECTS})
target_link_libraries(acl_overhead PRIVATE Threads::Threads)

# The installed tree, and small models compiled by its atc, are made once for the tests that use them.
set(acl_work ${CMAKE_BINARY_DIR}/acl)
add_test(NAME acl.install COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --prefix ${acl_work}/toolkit --component toolkit)
add_test(NAME acl.clients COMMAND ${CMAKE_SOURCE_DIR}/tests/acl/run_clients ${acl_work}/toolkit ${acl_work}/work)
# The package: made, unpacked, and the same clients with its set_env.sh.
if(NOT GE_SANITIZE)
  add_test(NAME acl.package COMMAND ${CMAKE_SOURCE_DIR}/tests/acl/run_package ${CMAKE_BINARY_DIR} ${acl_work}/package)
  set_tests_properties(acl.package PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300 RESOURCE_LOCK acl_install)
endif()
add_test(NAME acl.abi COMMAND acl_abi)
add_test(NAME acl.coverage COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/acl/coverage.py $<TARGET_FILE:ascendcl>)
add_test(NAME acl.contract COMMAND acl_test)
add_test(NAME acl.fuzz COMMAND acl_fuzz 5 3 1 ${acl_work}/work/small.om ${acl_work}/work/dynamic.om)
set_tests_properties(acl.install PROPERTIES FIXTURES_SETUP acl_toolkit RESOURCE_LOCK acl_install)
set_tests_properties(acl.clients PROPERTIES FIXTURES_REQUIRED acl_toolkit FIXTURES_SETUP acl_models TIMEOUT 300)
set_tests_properties(acl.contract acl.fuzz PROPERTIES FIXTURES_REQUIRED acl_models TIMEOUT 120)
set_tests_properties(acl.contract PROPERTIES ENVIRONMENT "GE_ACL_MODEL=${acl_work}/work/small.om")
if(GE_SANITIZE)
  # A program that loads a sanitized library is sanitized itself.
  set_tests_properties(acl.clients PROPERTIES ENVIRONMENT "CFLAGS=-fsanitize=${GE_SANITIZE};CXXFLAGS=-fsanitize=${GE_SANITIZE}")
else()
  add_test(NAME acl.overhead COMMAND acl_overhead ${acl_work}/work/small.om 12288 40)
  set_tests_properties(acl.overhead PROPERTIES FIXTURES_REQUIRED acl_models TIMEOUT 120 RUN_SERIAL ON)
endif()
