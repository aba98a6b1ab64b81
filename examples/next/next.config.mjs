/** The addon and the engine's worker are loaded from node_modules, not bundled. */
export default { serverExternalPackages: ['skein'] };
