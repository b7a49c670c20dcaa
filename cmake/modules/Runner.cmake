# SPDX-License-Identifier: Apache-2.0
# The bare-metal runner for one board. Options have the names of ExecuTorch's arm_executor_runner.

set(BOARD "corstone-320" CACHE STRING "Board: a file of cmake/boards")
set(SEMIHOSTING OFF CACHE BOOL "Console, files, command line and exit status through semihosting")
set(ET_PTE_FILE_PATH "" CACHE FILEPATH "Program (.pte or .bpte) to put into the ELF")
set(ET_MODEL_PTE_ADDR "" CACHE STRING "Address where the program is put from outside")
set(ET_NUM_INFERENCES 1 CACHE STRING "Inferences of a run")
set(ET_LOG_DUMP_OUTPUT "" CACHE STRING "Print every element of the outputs (default: only without semihosting)")
set(ET_ATOL 0.01 CACHE STRING "Absolute tolerance of a bundled program's outputs")
set(ET_RTOL 0.01 CACHE STRING "Relative tolerance of a bundled program's outputs")
set(EXECUTORCH_SELECT_OPS_MODEL "" CACHE STRING
    "Programs whose operators are linked in (default: ET_PTE_FILE_PATH; with neither, every kernel)")
set(EXECUTORCH_SELECT_OPS_LIST "" CACHE STRING "Operators that are linked in besides, by name, with commas between")
set(MEMORY_MODE "" CACHE STRING "Vela's memory mode: Sram_Only, Shared_Sram, Dedicated_Sram[_256KB|_384KB|_512KB]")
set(ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE 0x1800000 CACHE STRING "Bytes for a method and its planned memory")
set(ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE "" CACHE STRING "Bytes for the NPU's scratch and kernels")
set(ET_ARM_BAREMETAL_FAST_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE 0 CACHE STRING
    "Bytes of fast scratch in a Dedicated_Sram mode; 0: all of the SRAM")
set(FILE_POOL_SIZE 0x2000000 CACHE STRING "Bytes for a program that is read from a file, or put at an address")
set(STACK_SIZE "" CACHE STRING "Bytes of stack (default: 4 KiB, with kernels 12 KiB)")
set(EXECUTORCH_ENABLE_EVENT_TRACER ${SEMIHOSTING} CACHE BOOL
    "ETDump: to a file with --etdump, or without semihosting as base64 on the console")
set(ENABLE_CACHES OFF CACHE BOOL "Turn the CPU's caches on")

set(BOARD_FILE ${CMAKE_CURRENT_SOURCE_DIR}/boards/${BOARD}.json)
if(NOT EXISTS ${BOARD_FILE})
  file(GLOB boards RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/boards ${CMAKE_CURRENT_SOURCE_DIR}/boards/*.json)
  message(FATAL_ERROR "unknown board ${BOARD}; there are: ${boards}")
endif()

# Upstream's modes by NPU; its scratch of 64 MiB in external memory, or else all of the SRAM.
if(MEMORY_MODE)
  set(memory_mode ${MEMORY_MODE})
elseif(BOARD STREQUAL "corstone-320")
  set(memory_mode Dedicated_Sram_384KB)
else()
  set(memory_mode Shared_Sram)
endif()
if(ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE)
  set(temp_pool ${ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE})
elseif(memory_mode MATCHES "^Dedicated")
  set(temp_pool 0x4000000)
else()
  set(temp_pool 0)
endif()

# --- generated: board header, linker script, kernel registration ------------------------------------------------
set(BOARD_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/board)
file(MAKE_DIRECTORY ${BOARD_FOLDER})
set(address_option "")
if(ET_MODEL_PTE_ADDR)
  set(address_option --model-address ${ET_MODEL_PTE_ADDR})
endif()

function(generate what)
  execute_process(COMMAND ${ARMDEPLOY_PYTHON} ${ARGN} RESULT_VARIABLE result ERROR_VARIABLE message)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed with exit code ${result}: ${message}")
  endif()
endfunction()

set(KERNEL_TABLE ${ARMDEPLOY_ROOT}/runtime/kernels/kernels.json)
set(selection "")
set(selected ${EXECUTORCH_SELECT_OPS_MODEL})
if(NOT selected AND ET_PTE_FILE_PATH)
  set(selected ${ET_PTE_FILE_PATH})
endif()
if(selected)
  list(APPEND selection --pte ${selected})
endif()
if(EXECUTORCH_SELECT_OPS_LIST)
  list(APPEND selection --operators ${EXECUTORCH_SELECT_OPS_LIST})
endif()
if(NOT selection)
  set(selection --all)
endif()
generate("the selection of kernels" ${CMAKE_CURRENT_SOURCE_DIR}/tools/select_kernels.py ${selection}
  --table ${KERNEL_TABLE} --output ${BOARD_FOLDER}/kernels.cpp --sources-output ${BOARD_FOLDER}/kernels.cmake)
include(${BOARD_FOLDER}/kernels.cmake)

if(STACK_SIZE)
  set(stack ${STACK_SIZE})
elseif(KERNEL_SOURCES)
  set(stack 0x3000)
else()
  set(stack 0x1000)
endif()
generate("the board's files" ${CMAKE_CURRENT_SOURCE_DIR}/tools/board.py
  --board ${BOARD_FILE} --output ${BOARD_FOLDER} --memory-mode ${memory_mode} --stack ${stack}
  --file-pool ${FILE_POOL_SIZE} --method-pool ${ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE}
  --temp-pool ${temp_pool} --fast-pool ${ET_ARM_BAREMETAL_FAST_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE} ${address_option})

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${BOARD_FILE} ${KERNEL_TABLE} ${selected} ${CMAKE_CURRENT_SOURCE_DIR}/tools/board.py
  ${CMAKE_CURRENT_SOURCE_DIR}/tools/select_kernels.py)

# --- compiled ------------------------------------------------------------------------------------------------------
include(Schema)

add_library(build_options INTERFACE)
target_compile_features(build_options INTERFACE cxx_std_17)
target_compile_options(build_options INTERFACE
  -Os -g -ffunction-sections -fdata-sections -fno-exceptions -fno-rtti -fno-unwind-tables
  -fno-asynchronous-unwind-tables -ffp-contract=off -fno-math-errno -fno-threadsafe-statics -fno-use-cxa-atexit
  -Wall -Wextra -Wshadow -Wconversion)
target_include_directories(build_options INTERFACE ${ARMDEPLOY_ROOT} ${BOARD_FOLDER})
if(ET_LOG_DUMP_OUTPUT STREQUAL "")
  set(log_output $<NOT:$<BOOL:${SEMIHOSTING}>>)
else()
  set(log_output $<BOOL:${ET_LOG_DUMP_OUTPUT}>)
endif()
target_compile_definitions(build_options INTERFACE
  NDEBUG
  ARMDEPLOY_SEMIHOSTING=$<BOOL:${SEMIHOSTING}>
  ARMDEPLOY_ENABLE_CACHES=$<BOOL:${ENABLE_CACHES}>
  ARMDEPLOY_ETDUMP=$<BOOL:${EXECUTORCH_ENABLE_EVENT_TRACER}>)
target_link_libraries(build_options INTERFACE schema)

file(GLOB CORE_SOURCES CONFIGURE_DEPENDS ${ARMDEPLOY_ROOT}/runtime/core/*.cpp)
file(GLOB ETHOSU_SOURCES CONFIGURE_DEPENDS ${ARMDEPLOY_ROOT}/runtime/ethosu/*.cpp)
if(EXECUTORCH_ENABLE_EVENT_TRACER)
  file(GLOB ETDUMP_SOURCES CONFIGURE_DEPENDS ${ARMDEPLOY_ROOT}/runtime/etdump/*.cpp)
endif()
file(GLOB PLATFORM_SOURCES CONFIGURE_DEPENDS ${ARMDEPLOY_ROOT}/runtime/platform/*.cpp)
file(GLOB RUNNER_SOURCES CONFIGURE_DEPENDS ${ARMDEPLOY_ROOT}/runtime/runner/*.cpp)
add_executable(arm_executor_runner ${CORE_SOURCES} ${ETHOSU_SOURCES} ${PLATFORM_SOURCES} ${RUNNER_SOURCES}
               ${ETDUMP_SOURCES} ${BOARD_FOLDER}/kernels.cpp ${KERNEL_SOURCES})
target_link_libraries(arm_executor_runner PRIVATE build_options)
set_source_files_properties(${ARMDEPLOY_ROOT}/runtime/runner/main.cpp PROPERTIES COMPILE_DEFINITIONS
  "ARMDEPLOY_NUM_INFERENCES=${ET_NUM_INFERENCES};ARMDEPLOY_LOG_OUTPUT=${log_output};ARMDEPLOY_ATOL=${ET_ATOL};ARMDEPLOY_RTOL=${ET_RTOL}")
if(ET_PTE_FILE_PATH)
  get_filename_component(program ${ET_PTE_FILE_PATH} ABSOLUTE)
  set_source_files_properties(${ARMDEPLOY_ROOT}/runtime/runner/embedded_program.cpp PROPERTIES
    COMPILE_DEFINITIONS "ARMDEPLOY_PROGRAM=\"${program}\"" OBJECT_DEPENDS ${program})
endif()

# --- linked, checked, measured ---------------------------------------------------------------------------------------
target_link_options(arm_executor_runner PRIVATE
  -T${BOARD_FOLDER}/linker.ld -nostartfiles -nodefaultlibs -Wl,--gc-sections -Wl,--no-warn-rwx-segments
  -Wl,-Map=${CMAKE_CURRENT_BINARY_DIR}/arm_executor_runner.map)
target_link_libraries(arm_executor_runner PRIVATE -Wl,--start-group -lc_nano -lm -lgcc -Wl,--end-group)
set_target_properties(arm_executor_runner PROPERTIES LINK_DEPENDS ${BOARD_FOLDER}/linker.ld)
add_custom_command(TARGET arm_executor_runner POST_BUILD
  COMMAND ${ARMDEPLOY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools/elf_check.py --board ${BOARD_FILE}
          --map ${CMAKE_CURRENT_BINARY_DIR}/arm_executor_runner.map $<TARGET_FILE:arm_executor_runner>
  VERBATIM)
