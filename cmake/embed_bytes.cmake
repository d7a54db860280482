# cmake -DNAME=x -DFILE=x.bin -DOUT=x.cpp [-DTEXT=ON] -P embed_bytes.cmake: embeds a file as an array of bytes; text is
# zero-terminated. Without FILE the array is empty (its one byte does not count).
set(bytes "")
if(FILE)
  file(READ ${FILE} hex HEX)
  string(REGEX REPLACE "(..)" "std::byte{0x\\1}," bytes "${hex}")
  if(TEXT)
    string(APPEND bytes "std::byte{0}")
  endif()
endif()
if(bytes)
  set(count "sizeof(${NAME})")
else()
  set(bytes "std::byte{0}")
  set(count "0")
endif()
file(WRITE ${OUT} "#include <cstddef>
namespace shunt {
extern const std::byte ${NAME}[];
extern const std::size_t ${NAME}_bytes;
alignas(16) const std::byte ${NAME}[] = {${bytes}};
const std::size_t ${NAME}_bytes = ${count};
}
")
