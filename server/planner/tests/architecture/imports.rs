//! Finds import cycles between the files of a crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use petgraph::{algo::tarjan_scc, graphmap::DiGraphMap};
use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Item, ItemUse, Macro, UseTree, Visibility, visit::Visit};

/// The path of a module below the root of its crate; empty for the root.
type Module = Vec<String>;

/// The import cycles between the files of a crate, each as a list of imports. `sources` is the crate's source folder.
///
/// What a file imports of a module that contains it does not count: it is a part of that module. Nor do the crate's root, items
/// of inner modules that a file passes on (`pub use`), and items that are compiled for tests only.
pub(crate) fn cycles(sources: &Path) -> Vec<Vec<String>> {
    let all = all(sources);
    let names: BTreeMap<&Module, String> = all.keys().map(|module| (module, module.join("::"))).collect();
    let mut graph = DiGraphMap::<&str, ()>::new();
    for (module, imported) in &all {
        for found in imported {
            let contains = module.starts_with(found);
            if !contains && !module.is_empty() {
                graph.add_edge(&*names[module], &*names[found], ());
            }
        }
    }
    let cycles = tarjan_scc(&graph)
        .into_iter()
        .filter(|component| component.len() > 1);
    cycles
        .map(|cycle| {
            let within = graph
                .all_edges()
                .filter(|(from, to, ())| cycle.contains(from) && cycle.contains(to));
            within
                .map(|(from, to, ())| format!("{from} imports {to}"))
                .collect()
        })
        .collect()
}

/// The imports by which a layer of a crate depends on more than itself and the layers `below` it, each as a sentence. A layer is a
/// module of the crate's root with everything in it. What it imports from the root counts too: a re-export there may lead anywhere.
pub(crate) fn upward(sources: &Path, layer: &str, below: &[&str]) -> Vec<String> {
    let of_layer = |module: &Module, layer: &str| module.first().is_some_and(|first| first == layer);
    let all = all(sources);
    assert!(
        all.keys().any(|module| of_layer(module, layer)),
        "{layer} has files"
    );
    let mut upward = Vec::new();
    for (module, imported) in all.iter().filter(|(module, _)| of_layer(module, layer)) {
        for found in imported {
            let is_allowed = [layer].iter().chain(below).any(|below| of_layer(found, below));
            if !is_allowed {
                let found = if found.is_empty() {
                    "the root".to_owned()
                } else {
                    found.join("::")
                };
                upward.push(format!("{} imports {found}", module.join("::")));
            }
        }
    }
    upward
}

/// For each source file of a crate, the modules that it imports.
fn all(sources: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut files = BTreeMap::new();
    read(sources, &[], &mut files);
    let modules: BTreeSet<Module> = files.keys().cloned().collect();
    let root = files.get(&Module::new());
    let passed_on = root.map_or_else(BTreeMap::new, |root| passed_on_by_root(root, &modules));
    let imported = |(module, file): (&Module, &syn::File)| {
        let mut imports = Imports {
            module,
            modules: &modules,
            passed_on: &passed_on,
            passes_on: false,
            found: BTreeSet::new(),
        };
        imports.visit_file(file);
        (module.clone(), imports.found)
    };
    files.iter().map(imported).collect()
}

/// The names that the root of a crate passes on (`pub use`), with the modules that they come from.
fn passed_on_by_root(root: &syn::File, modules: &BTreeSet<Module>) -> BTreeMap<String, Module> {
    let mut names = BTreeMap::new();
    for item in &root.items {
        if let syn::Item::Use(item) = item
            && !matches!(item.vis, Visibility::Inherited)
        {
            collect(&item.tree, &[], modules, &mut names);
        }
    }
    names
}

fn collect(
    tree: &UseTree,
    before: &[String],
    modules: &BTreeSet<Module>,
    names: &mut BTreeMap<String, Module>,
) {
    let mut add = |name: String| {
        let mut module: Module = before.iter().filter(|part| *part != "crate").cloned().collect();
        while !module.is_empty() && !modules.contains(&module) {
            module.pop();
        }
        if !module.is_empty() {
            names.insert(name, module);
        }
    };
    match tree {
        UseTree::Path(path) => {
            let before = [before, &[path.ident.to_string()]].concat();
            collect(&path.tree, &before, modules, names);
        }
        UseTree::Name(name) => add(name.ident.to_string()),
        UseTree::Rename(rename) => add(rename.rename.to_string()),
        UseTree::Glob(_) => {}
        UseTree::Group(group) => group
            .items
            .iter()
            .for_each(|tree| collect(tree, before, modules, names)),
    }
}

/// Reads the source files of a module's folder.
fn read(folder: &Path, module: &[String], files: &mut BTreeMap<Module, syn::File>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the entry is readable").path();
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        let mut inner = module.to_vec();
        if !matches!(stem, "lib" | "main" | "mod") {
            inner.push(stem.to_owned());
        }
        if path.is_dir() {
            read(&path, &inner, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
            let text = fs::read_to_string(&path).expect("the file is readable");
            let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            files.insert(inner, file);
        }
    }
}

/// The imports of one file.
struct Imports<'a> {
    module: &'a [String],
    modules: &'a BTreeSet<Module>,
    /// The names that the root passes on.
    passed_on: &'a BTreeMap<String, Module>,
    /// Whether the `use` that is being read passes on what it imports.
    passes_on: bool,
    found: BTreeSet<Module>,
}

impl Imports<'_> {
    /// Records a path as it is written in this file. A path that leads to an item of the root is recorded as the root.
    fn note(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let (mut module, mut rest) = match first.as_str() {
            "crate" => (Module::new(), rest),
            "self" => (self.module.to_vec(), rest),
            "super" => (self.module[..self.module.len().saturating_sub(1)].to_vec(), rest),
            // A module names the modules in its folder without a prefix.
            inner => ([self.module, &[inner.to_owned()]].concat(), rest),
        };
        while let Some((first, others)) = rest.split_first().filter(|(first, _)| *first == "super") {
            debug_assert_eq!(first, "super");
            module.pop();
            rest = others;
        }
        module.extend(rest.iter().cloned());
        let of_root = module.first().filter(|_| first == "crate");
        if let Some(origin) = of_root.and_then(|name| self.passed_on.get(name)) {
            module.clone_from(origin);
        }
        while !module.is_empty() && !self.modules.contains(&module) {
            module.pop();
        }
        let is_passed_on = self.passes_on && module.starts_with(self.module);
        if !is_passed_on {
            self.found.insert(module);
        }
    }

    fn note_tree(&mut self, tree: &UseTree, before: &[String]) {
        let with = |last: &dyn ToString| [before, &[last.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.note_tree(&path.tree, &with(&path.ident)),
            UseTree::Name(name) => self.note(&with(&name.ident)),
            UseTree::Rename(rename) => self.note(&with(&rename.ident)),
            UseTree::Glob(_) => self.note(before),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(tree, before)),
        }
    }

    /// Records the paths in a macro's tokens. The tokens are not parsed; a path is a sequence of names and `::`.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Ident(ident) if colons == 2 => {
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.note(&path);
                    path.clear();
                    colons = 0;
                    match other {
                        TokenTree::Ident(ident) => path.push(ident.to_string()),
                        TokenTree::Group(group) => self.note_tokens(group.stream()),
                        _ => {}
                    }
                }
            }
        }
        self.note(&path);
    }
}

impl<'ast> Visit<'ast> for Imports<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_for_tests) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.passes_on = !matches!(item.vis, Visibility::Inherited);
        self.note_tree(&item.tree, &[]);
        self.passes_on = false;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.note(&segments);
        syn::visit::visit_path(self, path);
    }

    /// `pub(crate)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.note_tokens(call.tokens.clone());
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args::<syn::Path>()
            .is_ok_and(|condition| condition.is_ident("test"))
}
