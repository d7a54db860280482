// A protocol buffers file as a tree of fields, so that each field can be changed separately while the enclosing lengths
// stay right (https://protobuf.dev/programming-guides/encoding). It knows no schema: bytes that parse as a message
// become one. Plain functions; they trust nothing in the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shunt {

struct ProtoNode {
  enum class Kind : std::uint8_t { number = 0, bits64 = 1, bytes = 2, bits32 = 5, message };

  std::uint32_t number = 0;  // the field's number
  Kind kind = Kind::number;
  std::uint64_t value = 0;  // of a varint or fixed-size field
  std::string bytes = {};
  std::vector<ProtoNode> fields = {};  // of a message
};
using ProtoTree = std::vector<ProtoNode>;

inline constexpr std::uint32_t kMostProtoFieldNumber = 32;  // ONNX uses no higher number
inline constexpr unsigned kMostProtoDepth = 12;

inline std::optional<std::uint64_t> take_proto_number(std::string_view& rest) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(rest.front());
    rest.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

// Returns nullopt if the bytes are not a message.
inline std::optional<ProtoTree> proto_tree(std::string_view rest, unsigned depth = 0) {
  ProtoTree tree;
  while (!rest.empty()) {
    const auto tag = take_proto_number(rest);
    if (!tag || *tag >> 3U == 0 || *tag >> 3U > kMostProtoFieldNumber) return std::nullopt;
    ProtoNode node{.number = static_cast<std::uint32_t>(*tag >> 3U), .kind = static_cast<ProtoNode::Kind>(*tag & 7U)};
    switch (node.kind) {
      case ProtoNode::Kind::number:
      case ProtoNode::Kind::bytes: {
        const auto number = take_proto_number(rest);
        if (!number) return std::nullopt;
        node.value = *number;
        if (node.kind == ProtoNode::Kind::number) break;
        if (node.value > rest.size()) return std::nullopt;
        node.bytes = rest.substr(0, node.value);
        rest.remove_prefix(node.value);
        auto fields = node.bytes.empty() || depth == kMostProtoDepth ? std::nullopt : proto_tree(node.bytes, depth + 1);
        if (!fields) break;
        node.kind = ProtoNode::Kind::message;
        node.fields = std::move(*fields);
        break;
      }
      case ProtoNode::Kind::bits32:
      case ProtoNode::Kind::bits64: {
        const std::size_t bytes = node.kind == ProtoNode::Kind::bits32 ? 4 : 8;
        if (rest.size() < bytes) return std::nullopt;
        std::memcpy(&node.value, rest.data(), bytes);
        rest.remove_prefix(bytes);
        break;
      }
      default:
        return std::nullopt;
    }
    tree.push_back(std::move(node));
  }
  return tree;
}

inline void put_proto_number(std::string& to, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) to += static_cast<char>(number | 0x80U);
  to += static_cast<char>(number);
}

inline std::string proto_bytes(const ProtoTree& tree) {
  std::string to;
  for (const ProtoNode& node : tree) {
    const bool is_message = node.kind == ProtoNode::Kind::message;
    const auto wire = static_cast<std::uint32_t>(is_message ? ProtoNode::Kind::bytes : node.kind);
    put_proto_number(to, std::uint64_t{node.number} << 3U | wire);
    if (node.kind == ProtoNode::Kind::number) {
      put_proto_number(to, node.value);
    } else if (node.kind == ProtoNode::Kind::bits32 || node.kind == ProtoNode::Kind::bits64) {
      to.append(reinterpret_cast<const char*>(&node.value), node.kind == ProtoNode::Kind::bits32 ? 4 : 8);
    } else {
      const std::string inner = is_message ? proto_bytes(node.fields) : node.bytes;
      put_proto_number(to, inner.size());
      to += inner;
    }
  }
  return to;
}

// A field's list and its index there.
struct ProtoPlace {
  ProtoTree* list = nullptr;
  std::size_t index = 0;
  [[nodiscard]] ProtoNode& node() const { return (*list)[index]; }
};

inline void append_proto_places(ProtoTree& tree, std::vector<ProtoPlace>& places) {
  for (std::size_t index = 0; index < tree.size(); ++index) {
    places.push_back({.list = &tree, .index = index});
    append_proto_places(tree[index].fields, places);
  }
}

// Returns the places of all fields, including those inside messages. Valid until a field is added or removed.
inline std::vector<ProtoPlace> proto_places(ProtoTree& tree) {
  std::vector<ProtoPlace> places;
  append_proto_places(tree, places);
  return places;
}

}  // namespace shunt
