// For any bytes in a plugin folder, the readers of manifests and of shared objects refuse them with a message.
// The attacks run in child processes under an alarm.
#include <elf.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "loader/elf_symbols.hpp"
#include "loader/manifest.hpp"
#include "loader/plugin_files.hpp"

namespace backplane::loader_test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// Runs the attack in a child, which must end by itself. It tells its case through a file, for when it does not.
template <class Attack>
void expect_survived(const Folder& folder, Attack attack) {
  const std::string note = folder.path() + "/case";
  EXPECT_EXIT(
      {
        alarm(60);
        attack([&](const std::string& text) { std::ofstream(note) << text; });
        _exit(0);
      },
      testing::ExitedWithCode(0), "")
      << "at " << std::ifstream(note).rdbuf();
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
T at(const std::string& bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
template <class T>
void put(std::string& bytes, uint64_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// ---- shared objects --------------------------------------------------------------------------------------------

// Each attempt under a name of its own: the system's loader knows a file again.
Failure load(const Folder& folder, const std::string& bytes, int number) {
  const std::string path = folder.write("damaged" + std::to_string(number) + ".so", bytes);
  const Failure failure = failure_of([&] { load_plugin(path); });
  fs::remove(path);
  return failure;
}

TEST(DamagedPlugin, WithASegmentBeyondItsEndIsRefused) {
  const Folder folder;
  std::string bytes = bytes_of(plugin_file("first"));
  const auto header = at<Elf64_Ehdr>(bytes, 0);
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t place = header.e_phoff + i * sizeof(Elf64_Phdr);
    auto segment = at<Elf64_Phdr>(bytes, place);
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W)) continue;
    segment.p_offset += uint64_t{1} << 20;
    put(bytes, place, segment);
  }
  expect_survived(folder, [&](const auto&) {
    const Failure failure = load(folder, bytes, 0);
    if (failure.text.find("ends beyond the file") == std::string::npos) _exit(1);
  });
}

// With the table of sections at its beginning, which is where some linkers put it, a file does not show at once that it
// was cut short.
TEST(DamagedPlugin, CutShortAnywhereIsRefused) {
  const Folder folder;
  const std::string whole = bytes_of(plugin_file("first"));
  std::string moved = whole;
  auto header = at<Elf64_Ehdr>(whole, 0);
  header.e_shoff = header.e_phoff;
  header.e_shnum = 1;
  put(moved, 0, header);
  expect_survived(folder, [&](const auto& say) {
    for (const std::string& bytes : {whole, moved})
      for (size_t size = 0; size < bytes.size(); size += 64) {
        say("size " + std::to_string(size));
        if (load(folder, bytes.substr(0, size), static_cast<int>(size)).code == BP_OK) _exit(1);
      }
  });
}

// Every field of the ELF header and of the table of segments, with values that numbers like to be wrong by.
TEST(DamagedPlugin, WithHostileHeadersIsRefusedOrLoads) {
  const Folder folder;
  const std::string whole = bytes_of(plugin_file("second"));
  const auto header = at<Elf64_Ehdr>(whole, 0);
  struct Field {
    uint64_t place;
    int size;
  };
  std::vector<Field> fields;
  for (const int place : {16, 18, 52, 54, 56, 58, 60, 62}) fields.push_back({static_cast<uint64_t>(place), 2});
  for (const int place : {24, 32, 40}) fields.push_back({static_cast<uint64_t>(place), 8});
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    const uint64_t begin = header.e_phoff + i * sizeof(Elf64_Phdr);
    const uint32_t type = at<Elf64_Phdr>(whole, begin).p_type;
    if (type != PT_LOAD && type != PT_DYNAMIC && type != PT_GNU_RELRO) continue;
    for (const uint64_t member : {0, 4}) fields.push_back({begin + member, 4});
    for (const uint64_t member : {8, 16, 32, 40}) fields.push_back({begin + member, 8});
  }
  // Numbers of buckets and of filter words in the table of hashed symbols.
  for (uint16_t i = 0; i < header.e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(whole, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_GNU_HASH) continue;
    for (const uint64_t word : {0, 8}) fields.push_back({section.sh_offset + word, 4});
  }
  const uint64_t size = whole.size();
  const uint64_t values[] = {0,
                             1,
                             7,
                             64,
                             4096,
                             size - 1,
                             size,
                             size + 1,
                             1u << 20,
                             1u << 31,
                             uint64_t{1} << 40,
                             uint64_t{1} << 63,
                             UINT64_MAX - 4095,
                             UINT64_MAX};
  int number = 0;
  for (const Field& field : fields)
    for (const uint64_t value : values) {
      std::string bytes = whole;
      std::memcpy(bytes.data() + field.place, &value, static_cast<size_t>(field.size));
      ++number;
      expect_survived(folder, [&](const auto& say) {
        say("byte " + std::to_string(field.place) + ", value " + std::to_string(value));
        load(folder, bytes, number);
      });
    }
}

TEST(DamagedPlugin, IsReadWithoutHarmWhateverItsBytes) {
  const Folder folder;
  const std::string whole = bytes_of(plugin_file("larger"));
  const std::string path = folder.path() + "/flipped.so";
  expect_survived(folder, [&](const auto& say) {
    std::mt19937_64 random(3);
    const auto header = at<Elf64_Ehdr>(whole, 0);
    for (int round = 0; round < 3000; ++round) {
      std::string bytes = whole;
      // Half of the time where the tables are: most other bytes are never read.
      const uint64_t tables[] = {0, header.e_phoff, header.e_shoff};
      const uint64_t from = round % 2 ? tables[random() % 3] : 0;
      const uint64_t span = round % 2 ? uint64_t{1024} : bytes.size();
      for (int flips = 0; flips < 1 + round % 8; ++flips)
        bytes[(from + random() % span) % bytes.size()] = static_cast<char>(random());
      if (round % 16 == 0) bytes.resize(random() % bytes.size());
      folder.write("flipped.so", bytes);
      say("round " + std::to_string(round));
      loader::read_elf(path);
    }
  });
}

// ---- manifests -------------------------------------------------------------------------------------------------

std::string nested(const std::string& open, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += open;
  return text;
}

TEST(DamagedManifest, WithValuesNestedDeeplyIsRefused) {
  const Folder folder;
  const std::string deep = nested("[", 400000) + std::string(400000, ']');
  const std::string objects = nested("{\"a\":", 100000) + "0" + std::string(100000, '}');
  for (const std::string& value : {deep, objects, nested("[", 400000)})
    for (const std::string around : {"", "name", "file", "ops", "contract", "of a later minor"}) {
      std::string text = value;
      if (!around.empty())
        text =
            R"({"name": "a", "file": "a.so", "contract": {"major": 0, "minor": 1}, ")" + around + "\": " + value + "}";
      const std::string path = folder.write("a.backplane.json", text);
      expect_survived(folder, [&](const auto& say) {
        say(around);
        const Failure failure = failure_of([&] { loader::read_manifest(path); });
        if (failure.text.find("deep") == std::string::npos || failure.text.size() > 500) _exit(1);
      });
    }
}

constexpr const char* kWhole =
    R"({"name": "acme", "file": "acme.so", "contract": {"major": 0, "minor": 1}, "backends": ["acme"], "ops": ["acme::op"],
        "kernels_for": ["cpu"], "cpu_features": ["avx2"], "sanitizer": "address", "later": {"x": [1e5, "\u00e9\ud83d\ude00"]}})";

TEST(DamagedManifest, IsReadOrRefusedWhateverItsBytes) {
  const Folder folder;
  expect_survived(folder, [&](const auto& say) {
    const std::string whole = kWhole;
    for (size_t i = 0; i < whole.size(); ++i)
      for (const int byte : {-1, 0, 1, 0x80, 0xc3, 0xff, int{'"'}, int{'['}, int{'\\'}, int{'9'}}) {
        std::string bytes = whole;
        byte < 0 ? bytes.resize(i) : void(bytes[i] = static_cast<char>(byte));
        const std::string path = folder.write("a.backplane.json", bytes);
        say(std::to_string(i) + " is " + std::to_string(byte));
        try {
          const loader::Manifest manifest = loader::read_manifest(path);
          if (manifest.name.empty() || manifest.file.find('\0') != std::string::npos) _exit(1);
        } catch (const Error&) {
          continue;
        }
      }
  });
}

TEST(DamagedManifest, MayNotHideOthersNorNameThemSo) {
  const Folder folder;
  folder.write("a_bytes.backplane.json", "{\"name\": \"\xff\xfe\"}");
  folder.write("b_\xff.backplane.json", "[[");
  folder.write("c_words.backplane.json",
               R"({"name": "two words", "file": "a.so", "contract": {"major": 0, "minor": 1}})");
  folder.write("d_nul.backplane.json", R"({"name": "d", "file": "a.so\u0000b", "contract": {"major": 0, "minor": 1}})");
  folder.write("e_escape.backplane.json",
               R"({"name": "e", "file": "e.so", "contract": {"major": 0, "minor": 1}, "ops": ["\u001b[2J"]})");
  fs::create_directory(folder.path() + "/f_folder.backplane.json");
  fs::create_symlink("nowhere", folder.path() + "/g_link.backplane.json");
  const std::string good = folder.plant("size_8", "untouched");
  add_plugin_path(folder.path());
  int refused = 0;
  bool found = false;
  for (const PluginInfo& plugin : plugins()) {
    if (plugin.path == good) found = plugin.state == "found";
    if (!plugin.manifest.starts_with(folder.path()) || plugin.state != "refused") continue;
    ++refused;
    EXPECT_THAT(plugin.why, HasSubstr(folder.path()));
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(refused, 7);
}

}  // namespace
}  // namespace backplane::loader_test
