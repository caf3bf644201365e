# `cargo xtask openapi-corpus`, run by bash in the root of the workspace.
. tests.d/lib.sh
options=()
for option in "$@"; do
    case $option in
        --prism) exec tests.d/openapi/prism --sample 60 ;;
        --inspector)
            need_clients
            options+=(--inspector "$NODE22/node $CLIENTS/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
            ;;
        --fastmcp)
            need_pip fastmcp==4.1.2
            options+=("$option")
            ;;
        *) options+=("$option") ;;
    esac
done
need_pip jsonschema-rs==0.60.3 pyyaml
need_openapi_corpus
cargo build --quiet --release --package sabir-cli
exec "$VENV/bin/python" -B tests.d/openapi/corpus.py "$TARGET/release/sabir" "$CORPUS" "$(schema_folder)" --limits "${options[@]}"
