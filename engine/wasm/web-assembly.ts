/** What is used of the global WebAssembly, whose types come with those of browsers. */
interface WebAssemblyOfNode {
  validate(bytes: Uint8Array): boolean;
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: object) => { readonly exports: object };
}

export const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyOfNode }).WebAssembly;
