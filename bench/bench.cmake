add_executable(bench_kernels bench/kernels.cc $<TARGET_OBJECTS:ge_tools> ${GE_ALL_OBJECTS})
target_link_libraries(bench_kernels PRIVATE fmt::fmt Threads::Threads)
add_executable(bench_planner bench/planner.cc plan/arena.cc plan/arena_search.cc)
