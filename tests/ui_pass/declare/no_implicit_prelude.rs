mod outputs {
    #[::side_output::splitter]
    pub enum Orders {
        Valid(u32),
        Invalid(u32),
    }
}

fn main() {
    assert_eq!(outputs::Orders::Valid(1).tag().name(), "valid");
}
