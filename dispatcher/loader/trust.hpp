// Who could have written a plugin: its code runs with the rights of this process, so nobody may have whom the process
// does not trust already. SECURITY.md states the rules.
#pragma once

#include <filesystem>
#include <string>

namespace backplane::loader {

// Why a file or folder is not trusted, or "": it, and the folders above it, may be written only by root, by the user of
// this process, and by those who may write the file that holds this very code. Links are followed first.
std::string why_untrusted(const std::filesystem::path& path);

// The same for a file that was found in a folder. No link may lead out of that folder.
std::string why_untrusted_in(const std::filesystem::path& folder, const std::filesystem::path& file);

// The file that holds this very code: libbackplane.so, or a test that links its objects.
std::filesystem::path own_file();

}  // namespace backplane::loader
