# GoogleTest from the sources in Debian's package, and what tests need of Highway's library.
set(googletest /usr/src/googletest/googletest)
add_library(gtest_main STATIC ${googletest}/src/gtest-all.cc ${googletest}/src/gtest_main.cc
                              ${CMAKE_CURRENT_SOURCE_DIR}/kernels_alone/highway.cpp)
target_include_directories(gtest_main PRIVATE ${googletest} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
set_target_properties(gtest_main PROPERTIES UNITY_BUILD OFF)
add_library(GTest::gtest_main ALIAS gtest_main)
