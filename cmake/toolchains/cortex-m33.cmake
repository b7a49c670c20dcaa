# SPDX-License-Identifier: Apache-2.0
# Cortex-M33 with GCC (arm-none-eabi-gcc).
set(ARMDEPLOY_CPU_FLAGS -mcpu=cortex-m33 -mfloat-abi=hard)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake)
