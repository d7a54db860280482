# cmake -DNAME=x -DFILE=x.bin -DOUT=x.cpp [-DTEXT=ON] -P embed_bytes.cmake: embeds a file as an array of bytes. Text is
# PTX: it loses its comments and indentation, a quarter of it, and ends with a zero. Without FILE the array is empty (its
# one byte does not count). The assembler includes the file: as a list of numbers, the compiler would need half a minute
# for some.
if(FILE)
  if(TEXT)
    file(READ ${FILE} text)
    string(REGEX REPLACE "\n[ \t]*//[^\n]*" "" text "${text}")
    string(REGEX REPLACE "\n[ \t]+" "\n" text "${text}")
    file(WRITE ${FILE} "${text}")
  endif()
  file(SIZE ${FILE} count)
  set(end "")
  if(TEXT)
    math(EXPR count "${count} + 1")
    set(end "\\n.byte 0")
  endif()
  string(LENGTH ${NAME} length)
  set(symbol _ZN5shunt${length}${NAME}E)  # shunt::NAME
  set(array "asm(\".section .rodata\\n.balign 16\\n.hidden ${symbol}\\n.globl ${symbol}\\n${symbol}:\\n.incbin \\\"${FILE}\\\"${end}\\n.previous\");")
else()
  set(count 0)
  set(array "namespace shunt {\nalignas(16) const std::byte ${NAME}[] = {std::byte{0}};\n}")
endif()
file(WRITE ${OUT} "#include <cstddef>
namespace shunt {
extern const std::byte ${NAME}[];
extern const std::size_t ${NAME}_bytes;
const std::size_t ${NAME}_bytes = ${count};
}
${array}
")
