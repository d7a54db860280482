# cmake -DNAME=x -DBASE=dir/x -DTEXTS=a;b -P embed_shader.cmake: writes dir/x.cpp with dir/x.spv as an array of words
# and the texts of dir/x.a and dir/x.b, empty if the file is missing.
file(READ ${BASE}.spv bytes HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1U," words "${bytes}")
set(source "#include <cstddef>
#include <cstdint>
#include <string_view>
namespace shunt {
extern const std::uint32_t ${NAME}_spirv[];
extern const std::size_t ${NAME}_spirv_words;
const std::uint32_t ${NAME}_spirv[] = {${words}};
const std::size_t ${NAME}_spirv_words = sizeof(${NAME}_spirv) / 4;
")
foreach(text IN LISTS TEXTS)
  set(characters "")
  if(EXISTS ${BASE}.${text})
    # For languages without fma, SPIRV-Cross writes x = fma(x, a, b) as "x *= a + b"; real sums are in brackets.
    file(READ ${BASE}.${text} translated)
    string(REGEX REPLACE "([^ \n][^\n=]*) \\*= ([^\n(][^\n]* [+-] [^\n]*\n)" "\\1 = \\1 * \\2" corrected "${translated}")
    if(NOT corrected STREQUAL translated)
      file(WRITE ${BASE}.${text} "${corrected}")
    endif()
    file(READ ${BASE}.${text} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," characters "${bytes}")
  endif()
  # The last character only terminates the array, so that no array is empty.
  string(APPEND source "extern const std::string_view ${NAME}_${text};
static const char ${NAME}_${text}_characters[] = {${characters}0};
const std::string_view ${NAME}_${text}{${NAME}_${text}_characters, sizeof(${NAME}_${text}_characters) - 1};
")
endforeach()
file(WRITE ${BASE}.cpp "${source}}
")
