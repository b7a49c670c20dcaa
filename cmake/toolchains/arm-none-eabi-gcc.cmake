# SPDX-License-Identifier: Apache-2.0
# Bare-metal Arm with GCC; the files cortex-*.cmake set ARMDEPLOY_CPU_FLAGS and include this one.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)

find_program(ARMDEPLOY_GXX arm-none-eabi-g++)
if(NOT ARMDEPLOY_GXX)
  message(FATAL_ERROR "arm-none-eabi-g++ is not installed; on Debian: apt-get install gcc-arm-none-eabi libstdc++-arm-none-eabi-newlib")
endif()
set(CMAKE_CXX_COMPILER ${ARMDEPLOY_GXX})
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_EXECUTABLE_SUFFIX_CXX "")

list(JOIN ARMDEPLOY_CPU_FLAGS " " ARMDEPLOY_CPU_FLAGS_TEXT)
set(CMAKE_CXX_FLAGS_INIT "-mthumb ${ARMDEPLOY_CPU_FLAGS_TEXT}")

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
