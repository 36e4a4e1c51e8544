# find_package(AscendCL) gives the target AscendCL::ascendcl.
get_filename_component(AscendCL_ROOT "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(AscendCL_INCLUDE_DIRS "${AscendCL_ROOT}/include")
if(NOT TARGET AscendCL::ascendcl)
  add_library(AscendCL::ascendcl SHARED IMPORTED)
  set_target_properties(AscendCL::ascendcl PROPERTIES
    IMPORTED_LOCATION "${AscendCL_ROOT}/lib64/libascendcl.so"
    INTERFACE_INCLUDE_DIRECTORIES "${AscendCL_INCLUDE_DIRS}")
endif()
