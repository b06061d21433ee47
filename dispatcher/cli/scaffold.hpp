// `backplane new`: a project of one's own, made of a template that the SDK brings.
//
// Templates are the folders of share/backplane/templates: projects that build and pass their tests as they are. In
// each, template.json describes it, and lists the words that become names. Prints to standard output and returns the
// process's exit status. Throws Error; main prints it.
#pragma once

#include <string>

namespace backplane::cli {

// `kind` is backend or op, `name` what becomes of the template's own name: NAME, or NAMESPACE::NAME of an op. `folder`
// must not exist yet, or be empty. `language`: empty is c++. `kernel`: an op comes with a kernel of its own, and so has
// a language. `wheel`: the project of an op also makes a Python wheel.
int scaffold(const std::string& kind, const std::string& name, const std::string& folder, const std::string& language,
             bool kernel, bool wheel);

}  // namespace backplane::cli
