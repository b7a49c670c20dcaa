# SPDX-License-Identifier: Apache-2.0
# AArch64 Linux with Debian's cross compiler.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

find_program(ARMDEPLOY_GXX aarch64-linux-gnu-g++)
if(NOT ARMDEPLOY_GXX)
  message(FATAL_ERROR "aarch64-linux-gnu-g++ is not installed; on Debian: apt-get install g++-aarch64-linux-gnu")
endif()
set(CMAKE_CXX_COMPILER ${ARMDEPLOY_GXX})

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
