# SPDX-License-Identifier: Apache-2.0
# Cortex-M0+ with GCC (arm-none-eabi-gcc).
set(ARMDEPLOY_CPU_FLAGS -mcpu=cortex-m0plus -mfloat-abi=soft)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake)
