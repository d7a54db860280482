# cmake -DOUT=x.cpp -DDIR=dir -DNAMES=x;y -DTEXTS=a;b [-DSPIRV=ON] -P embed_shader.cmake: writes x.cpp with the texts
# dir/x.a, dir/x.b ..., empty if the file is missing, and with SPIRV also dir/x.spv as an array of words.
set(source "#include <cstddef>
#include <cstdint>
#include <string_view>
namespace shunt {
")
foreach(NAME IN LISTS NAMES)
  if(SPIRV)
    file(READ ${DIR}/${NAME}.spv bytes HEX)
    string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1U," words "${bytes}")
    string(APPEND source "extern const std::uint32_t ${NAME}_spirv[];
extern const std::size_t ${NAME}_spirv_words;
const std::uint32_t ${NAME}_spirv[] = {${words}};
const std::size_t ${NAME}_spirv_words = sizeof(${NAME}_spirv) / 4;
")
  endif()
  foreach(text IN LISTS TEXTS)
    set(file ${DIR}/${NAME}.${text})
    set(characters "")
    if(EXISTS ${file})
      # For languages without fma, SPIRV-Cross writes x = fma(x, a, b) as "x *= a + b"; real sums are in brackets.
      file(READ ${file} translated)
      string(REGEX REPLACE "([^ \n][^\n=]*) \\*= ([^\n(][^\n]* [+-] [^\n]*\n)" "\\1 = \\1 * \\2" corrected "${translated}")
      if(NOT corrected STREQUAL translated)
        file(WRITE ${file} "${corrected}")
      endif()
      file(READ ${file} bytes HEX)
      string(REGEX REPLACE "(..)" "0x\\1," characters "${bytes}")
    endif()
    # The last character only terminates the array, so that no array is empty.
    string(APPEND source "extern const std::string_view ${NAME}_${text};
static const char ${NAME}_${text}_characters[] = {${characters}0};
const std::string_view ${NAME}_${text}{${NAME}_${text}_characters, sizeof(${NAME}_${text}_characters) - 1};
")
  endforeach()
endforeach()
file(WRITE ${OUT} "${source}}
")
