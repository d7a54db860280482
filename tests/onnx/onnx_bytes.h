// ONNX files for tests, written field by field (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace shunt::onnx {

class OnnxBytes {
 public:
  using Names = std::vector<std::string>;
  using Numbers = std::vector<std::int64_t>;

  struct Integer {
    std::string name;
    std::int64_t value;
  };

  OnnxBytes& input(const std::string& name, const Numbers& dims) {
    graph_ += field(11, value_info(name, dims));
    return *this;
  }
  OnnxBytes& output(const std::string& name) {
    graph_ += field(12, field(1, name));
    return *this;
  }
  OnnxBytes& integers(const std::string& name, const Numbers& elements) {
    std::string tensor = number(1, static_cast<std::int64_t>(elements.size())) + number(2, 7) + field(8, name);
    for (const std::int64_t element : elements) tensor += number(7, element);
    graph_ += field(5, tensor);
    return *this;
  }
  OnnxBytes& floats(const std::string& name, const Numbers& dims, std::size_t elements) {
    std::string tensor;
    for (const std::int64_t dim : dims) tensor += number(1, dim);
    graph_ += field(5, tensor + number(2, 1) + field(8, name) + field(9, std::string(elements * sizeof(float), '\0')));
    return *this;
  }
  OnnxBytes& node(const std::string& op, const Names& inputs, const Names& outputs,
                  const std::vector<Integer>& attributes = {}) {
    std::string node;
    for (const std::string& name : inputs) node += field(1, name);
    for (const std::string& name : outputs) node += field(2, name);
    node += field(4, op);
    for (const auto& [name, value] : attributes) node += field(5, field(1, name) + number(3, value));
    graph_ += field(1, node);
    return *this;
  }

  [[nodiscard]] std::vector<std::byte> bytes() const {
    const std::string model = field(7, graph_) + field(8, number(2, 17));
    const auto* first = reinterpret_cast<const std::byte*>(model.data());
    return {first, first + model.size()};
  }

 private:
  static std::string varint(std::uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7U) text += static_cast<char>((value & 0x7FU) | 0x80U);
    return text + static_cast<char>(value);
  }
  static std::string number(std::uint32_t field, std::int64_t value) {
    return varint(std::uint64_t{field} << 3U) + varint(static_cast<std::uint64_t>(value));
  }
  static std::string field(std::uint32_t number, std::string_view content) {
    return varint(std::uint64_t{number} << 3U | 2U) + varint(content.size()) + std::string(content);
  }
  static std::string value_info(const std::string& name, const Numbers& dims) {
    std::string shape;
    for (const std::int64_t dim : dims) shape += field(1, number(1, dim));
    return field(1, name) + field(2, field(1, number(1, 1) + field(2, shape)));
  }

  std::string graph_;
};

}  // namespace shunt::onnx
