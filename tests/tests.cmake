# Tests that cross folders. Those that need the whole compiler under a sanitizer are labelled release_only where
# they would only repeat what the release build shows.
foreach(program conformance fuzz)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${program}/*.cc)
  add_executable(${program} ${sources} $<TARGET_OBJECTS:ge_tools> ${GE_ALL_OBJECTS})
  target_link_libraries(${program} PRIVATE fmt::fmt Threads::Threads)
endforeach()
