# SPDX-License-Identifier: Apache-2.0
# The .pte format as C++: flatc on the schema files of the installed executorch wheel.
#
# Gives the interface library `schema` (headers program_generated.h and bundled_program_schema_generated.h, and
# FlatBuffers' own). EXECUTORCH_SCHEMA_FOLDER may name the folder of the wheel, SITE/executorch.

find_program(FLATC flatc)
find_path(FLATBUFFERS_FOLDER flatbuffers/flatbuffers.h PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH)
if(NOT FLATC OR NOT FLATBUFFERS_FOLDER)
  message(FATAL_ERROR "FlatBuffers is not installed; on Debian: apt-get install flatbuffers-compiler libflatbuffers-dev")
endif()

if(NOT EXECUTORCH_SCHEMA_FOLDER)
  execute_process(
    COMMAND ${ARMDEPLOY_PYTHON} -c
            "import importlib.util as u; s = u.find_spec('executorch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE EXECUTORCH_SCHEMA_FOLDER
    OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
set(PROGRAM_SCHEMA ${EXECUTORCH_SCHEMA_FOLDER}/schema/program.fbs)
set(BUNDLE_SCHEMA ${EXECUTORCH_SCHEMA_FOLDER}/devtools/bundled_program/schema/bundled_program_schema.fbs)
if(NOT EXISTS ${PROGRAM_SCHEMA})
  message(FATAL_ERROR "no executorch package for ${ARMDEPLOY_PYTHON}; run ./setup.sh or set EXECUTORCH_SCHEMA_FOLDER")
endif()

set(SCHEMA_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/schema)
set(SCHEMA_HEADERS ${SCHEMA_FOLDER}/program_generated.h ${SCHEMA_FOLDER}/bundled_program_schema_generated.h
                   ${SCHEMA_FOLDER}/scalar_type_generated.h)
add_custom_command(
  OUTPUT ${SCHEMA_HEADERS}
  COMMAND ${FLATC} --cpp --cpp-std c++17 --no-warnings -o ${SCHEMA_FOLDER} ${PROGRAM_SCHEMA} ${BUNDLE_SCHEMA}
          ${EXECUTORCH_SCHEMA_FOLDER}/schema/scalar_type.fbs
  DEPENDS ${PROGRAM_SCHEMA} ${BUNDLE_SCHEMA}
  VERBATIM)
add_custom_target(schema_headers DEPENDS ${SCHEMA_HEADERS})

# Only FlatBuffers' headers: all of /usr/include would mix the host's C library into a cross build.
file(MAKE_DIRECTORY ${SCHEMA_FOLDER})
if(NOT EXISTS ${SCHEMA_FOLDER}/flatbuffers)
  file(CREATE_LINK ${FLATBUFFERS_FOLDER}/flatbuffers ${SCHEMA_FOLDER}/flatbuffers SYMBOLIC)
endif()

add_library(schema INTERFACE)
add_dependencies(schema schema_headers)
target_include_directories(schema SYSTEM INTERFACE ${SCHEMA_FOLDER})
