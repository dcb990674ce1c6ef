//! The names in a split function: which are variants of the enum, and which are never read.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens as _;
use std::collections::{HashMap, HashSet};
use syn::visit::{self, Visit};
use syn::{Expr, ExprAssign, ItemFn, ItemUse, Local, PatIdent, Path, UseTree};

pub(super) struct Scope {
    /// The function returns `Self`, so that is the enum.
    pub(super) returns_self: bool,
    /// How often each word stands in the function.
    words: HashMap<String, usize>,
    /// How often each variable is declared, or assigned to as a whole.
    writes: HashMap<String, usize>,
    /// Variables that the function declares.
    declared: HashSet<String>,
    /// Variants that a `use` in the function names.
    imported: HashSet<String>,
    /// The function has `use Orders::*`.
    glob: bool,
}

impl Scope {
    pub(super) fn of(function: &ItemFn, splitter: &Path) -> Self {
        let mut scope = Self {
            returns_self: false,
            words: HashMap::new(),
            writes: HashMap::new(),
            declared: HashSet::new(),
            imported: HashSet::new(),
            glob: false,
        };
        scope.count_words(function.sig.output.to_token_stream());
        scope.returns_self = scope.words.contains_key("Self");
        scope.count_words(function.block.to_token_stream());
        let splitter = splitter.segments.last().map(|last| last.ident.clone());
        Names { scope: &mut scope, splitter, in_let: false }.visit_block(&function.block);
        scope
    }

    /// Whether the function declares the variable, and all that it does with it is to assign to
    /// it.
    pub(super) fn is_never_read(&self, name: &Ident) -> bool {
        let name = name.to_string();
        self.declared.contains(&name) && self.words.get(&name) == self.writes.get(&name)
    }

    /// Whether the name alone is a variant of the enum, as far as the function tells.
    pub(super) fn imports(&self, name: &Ident) -> bool {
        let name = name.to_string();
        let looks_like_one = name.starts_with(char::is_uppercase)
            && name.contains(char::is_lowercase)
            && !["Some", "None", "Ok", "Err", "Self"].contains(&&*name);
        self.imported.contains(&name) || self.glob && looks_like_one
    }

    fn count_words(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => *self.words.entry(ident.to_string()).or_default() += 1,
                TokenTree::Group(group) => self.count_words(group.stream()),
                // `format!("{route}")` reads it too.
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    for word in
                        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
                    {
                        *self.words.entry(word.to_owned()).or_default() += 1;
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
    }

    fn write(&mut self, name: &Ident) {
        *self.writes.entry(name.to_string()).or_default() += 1;
    }
}

/// Collects declarations, assignments and imports.
struct Names<'a> {
    scope: &'a mut Scope,
    splitter: Option<Ident>,
    in_let: bool,
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_local(&mut self, local: &'ast Local) {
        self.in_let = true;
        self.visit_pat(&local.pat);
        self.in_let = false;
        if let Some(init) = &local.init {
            self.visit_local_init(init);
        }
    }

    fn visit_pat_ident(&mut self, name: &'ast PatIdent) {
        // A reference may be read through another name.
        if self.in_let && name.by_ref.is_none() {
            self.scope.write(&name.ident);
            self.scope.declared.insert(name.ident.to_string());
        }
        visit::visit_pat_ident(self, name);
    }

    fn visit_expr_assign(&mut self, assign: &'ast ExprAssign) {
        self.assigned(&assign.left);
        visit::visit_expr_assign(self, assign);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.imported(&item.tree, false);
    }
}

impl Names<'_> {
    fn assigned(&mut self, place: &Expr) {
        match place {
            Expr::Path(path) => {
                if let Some(name) = path.path.get_ident() {
                    self.scope.write(name);
                }
            }
            Expr::Tuple(places) => places.elems.iter().for_each(|place| self.assigned(place)),
            _ => {}
        }
    }

    /// `in_enum`: what stands before leads to the enum.
    fn imported(&mut self, tree: &UseTree, in_enum: bool) {
        match tree {
            UseTree::Path(path) => {
                self.imported(&path.tree, Some(&path.ident) == self.splitter.as_ref());
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.imported(tree, in_enum));
            }
            UseTree::Name(name) if in_enum => {
                self.scope.imported.insert(name.ident.to_string());
            }
            UseTree::Rename(rename) if in_enum => {
                self.scope.imported.insert(rename.rename.to_string());
            }
            UseTree::Glob(_) => self.scope.glob |= in_enum,
            UseTree::Name(_) | UseTree::Rename(_) => {}
        }
    }
}
