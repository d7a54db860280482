# cmake -DNAME=x -DSPIRV=x.spv -DOUT=x.cpp -P embed_spirv.cmake: a SPIR-V module as an array of words.
file(READ ${SPIRV} bytes HEX)
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1U," words "${bytes}")
file(WRITE ${OUT} "#include <cstddef>
#include <cstdint>
namespace shunt {
extern const std::uint32_t ${NAME}_spirv[];
extern const std::size_t ${NAME}_spirv_words;
const std::uint32_t ${NAME}_spirv[] = {${words}};
const std::size_t ${NAME}_spirv_words = sizeof(${NAME}_spirv) / 4;
}
")
