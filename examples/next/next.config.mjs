/** The addon and the engine's worker are loaded from node_modules, not bundled. */
export default {
  serverExternalPackages: ['skein'],
  // `output: 'standalone'` copies what imports name; the worker, the addon and the model are opened by their paths.
  outputFileTracingIncludes: { '/**': ['node_modules/skein/**'] },
};
