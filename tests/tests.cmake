# Tests that cross folders. `release_only`: what the sanitizer build would only repeat, slowly.
foreach(program conformance fuzz samples)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${program}/*.cc)
  add_executable(${program} ${sources} $<TARGET_OBJECTS:ge_tools> ${GE_ALL_OBJECTS})
  target_link_libraries(${program} PRIVATE fmt::fmt Threads::Threads)
  add_dependencies(${program} ge_pictures)
endforeach()

add_executable(blame tests/blame/blame.cc $<TARGET_OBJECTS:ge_tools> ${GE_ALL_OBJECTS})
target_link_libraries(blame PRIVATE fmt::fmt GTest::gtest GTest::gmock GTest::gtest_main Threads::Threads)
add_test(NAME blame COMMAND blame)

add_test(NAME floors COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/floors.py)

# Small models, made once; the fuzzers and the command-line tests use them.
set(models ${CMAKE_BINARY_DIR}/test-models)
add_test(NAME make_models COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/make_models.py ${models})
set_tests_properties(make_models PROPERTIES FIXTURES_SETUP models)
add_test(NAME compile_models COMMAND sh -c
  "for m in chain conv branch loop; do $<TARGET_FILE:atc> --model=${models}/$m.onnx --framework=5 --output=${models}/$m && $<TARGET_FILE:ge> opt ${models}/$m.onnx -o ${models}/$m.ir || exit 1; done")
set_tests_properties(compile_models PROPERTIES FIXTURES_SETUP compiled FIXTURES_REQUIRED models)
foreach(m chain conv branch loop)
  foreach(kind onnx compile)
    add_test(NAME fuzz_${kind}_${m} COMMAND fuzz ${kind} ${models}/${m}.onnx --count 500)
    set_tests_properties(fuzz_${kind}_${m} PROPERTIES FIXTURES_REQUIRED models)
  endforeach()
  add_test(NAME fuzz_ir_${m} COMMAND fuzz ir ${models}/${m}.ir --count 500)
  set_tests_properties(fuzz_ir_${m} PROPERTIES FIXTURES_REQUIRED compiled)
  foreach(kind om plan lies)
    add_test(NAME fuzz_${kind}_${m} COMMAND fuzz ${kind} ${models}/${m}.om --count 500)
    set_tests_properties(fuzz_${kind}_${m} PROPERTIES FIXTURES_REQUIRED compiled)
  endforeach()
endforeach()

add_test(NAME command_lines COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/command_lines.py ${CMAKE_BINARY_DIR} ${models})
set_tests_properties(command_lines PROPERTIES FIXTURES_REQUIRED models)
add_test(NAME report COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/report.py ${CMAKE_BINARY_DIR} ${models})
set_tests_properties(report PROPERTIES FIXTURES_REQUIRED "models;compiled")
add_test(NAME atc_options COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/atc_options.py ${CMAKE_BINARY_DIR} ${models})
set_tests_properties(atc_options PROPERTIES FIXTURES_REQUIRED models)
add_test(NAME hostile COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/hostile.py ${CMAKE_BINARY_DIR})

add_test(NAME samples COMMAND samples)
set_tests_properties(samples PROPERTIES LABELS release_only)
add_test(NAME loop_overhead COMMAND python3 ${CMAKE_SOURCE_DIR}/bench/loop.py ${CMAKE_BINARY_DIR})
set_tests_properties(loop_overhead PROPERTIES LABELS release_only RUN_SERIAL ON)

# Where the shared data folder is absent, they are copied out of the onnx package first.
add_test(NAME conformance_data COMMAND ${CMAKE_SOURCE_DIR}/tests/conformance/run --mode none)
set_tests_properties(conformance_data PROPERTIES FIXTURES_SETUP conformance_data SKIP_RETURN_CODE 77 TIMEOUT 900
  LABELS release_only FIXTURES_REQUIRED peer)
# The runtime and generated code for ARM, under an emulator.
add_test(NAME aarch64 COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/cross/run.py ${CMAKE_BINARY_DIR})
set_tests_properties(aarch64 PROPERTIES LABELS release_only SKIP_RETURN_CODE 77 TIMEOUT 900)
# A thousand shapes through one dynamic model (bench/bench.cmake makes the program).
add_test(NAME shapes COMMAND sh -c "$<TARGET_FILE:bench_shapes> ${models}/conv.om --runs 10")
set_tests_properties(shapes PROPERTIES FIXTURES_REQUIRED compiled)
# Models and contexts side by side; three minutes of it are for hand.
add_test(NAME soak COMMAND sh -c "$<TARGET_FILE:soak> --seconds 10 ${models}/chain.om ${models}/conv.om ${models}/branch.om ${models}/loop.om")
set_tests_properties(soak PROPERTIES FIXTURES_REQUIRED compiled)

foreach(how "code;2" "code;0" "interp;2")
  list(GET how 0 mode)
  list(GET how 1 level)
  add_test(NAME conformance_${mode}_O${level}
    COMMAND ${CMAKE_SOURCE_DIR}/tests/conformance/run --mode ${mode} --opt ${level} --work ${CMAKE_BINARY_DIR}/conformance-${mode}-${level})
  set_tests_properties(conformance_${mode}_O${level} PROPERTIES LABELS release_only TIMEOUT 1800
    ENVIRONMENT GE_BUILD=${CMAKE_BINARY_DIR} SKIP_RETURN_CODE 77 FIXTURES_REQUIRED conformance_data)
endforeach()

# The Python of bench/venv; what needs it is skipped (and counted) where it cannot be made.
add_test(NAME peer_python COMMAND ${CMAKE_SOURCE_DIR}/bench/venv)
set_tests_properties(peer_python PROPERTIES FIXTURES_SETUP peer SKIP_RETURN_CODE 77 LABELS release_only TIMEOUT 900)
add_test(NAME cases COMMAND ${CMAKE_SOURCE_DIR}/tests/cases/run data)
add_test(NAME cases_written COMMAND ${CMAKE_SOURCE_DIR}/tests/cases/run written)
foreach(mode code interp)
  add_test(NAME peer_ops_${mode} COMMAND ${CMAKE_SOURCE_DIR}/tests/peer_ops/run --mode ${mode})
endforeach()
add_executable(case_recipes tests/cases/recipes.cc $<TARGET_OBJECTS:ge_tools> ${GE_ALL_OBJECTS})
target_link_libraries(case_recipes PRIVATE fmt::fmt Threads::Threads)
add_test(NAME case_recipes COMMAND case_recipes ${CMAKE_SOURCE_DIR}/tests/cases/data)
set_tests_properties(cases cases_written peer_ops_code peer_ops_interp PROPERTIES LABELS release_only
  ENVIRONMENT GE_BUILD=${CMAKE_BINARY_DIR} SKIP_RETURN_CODE 77 TIMEOUT 1800)
set_tests_properties(cases_written peer_ops_code peer_ops_interp PROPERTIES FIXTURES_REQUIRED peer)

# Parts, so that the runner names and counts what a machine without npm or without the scripts that make
# models leaves out (exit code 77).
foreach(set ocr speech rest)
  add_test(NAME models_${set} COMMAND ${CMAKE_SOURCE_DIR}/bench/models --no-time --build ${CMAKE_BINARY_DIR} --set ${set})
  set_tests_properties(models_${set} PROPERTIES LABELS release_only TIMEOUT 2400 SKIP_RETURN_CODE 77
    RESOURCE_LOCK models FIXTURES_REQUIRED peer)
endforeach()

# Models of one operator each, their outputs only.
add_test(NAME ops COMMAND ${CMAKE_SOURCE_DIR}/bench/ops --check --build ${CMAKE_BINARY_DIR})
set_tests_properties(ops PROPERTIES LABELS release_only SKIP_RETURN_CODE 77 TIMEOUT 600 FIXTURES_REQUIRED peer)

# --only that names no case is an error, not a success without cases.
foreach(bench models ops)
  add_test(NAME no_such_case_${bench} COMMAND sh -c
    "${CMAKE_SOURCE_DIR}/bench/${bench} --build ${CMAKE_BINARY_DIR} --only nosuch; code=$?; test $code = 2 || exit $((code == 77 ? 77 : 1))")
  set_tests_properties(no_such_case_${bench} PROPERTIES LABELS release_only SKIP_RETURN_CODE 77 RESOURCE_LOCK models TIMEOUT 1200
    FIXTURES_REQUIRED peer)
endforeach()

# Some random graphs against ONNX Runtime.
add_test(NAME fuzz_peer COMMAND ${CMAKE_SOURCE_DIR}/tests/peer_ops/fuzz 30 2001)
set_tests_properties(fuzz_peer PROPERTIES LABELS release_only SKIP_RETURN_CODE 77 TIMEOUT 600 FIXTURES_REQUIRED peer
  ENVIRONMENT GE_BUILD=${CMAKE_BINARY_DIR})
