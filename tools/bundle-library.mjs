// Puts the few functions that the library needs of some large packages into the modules that import them:
//
//   dist/src/hub/hub-client.js    with what it calls of @huggingface/hub, 50 kB of 13 MB, and so on
//   dist/NOTICES.txt              the licences of these packages
//
// Users who install Skein need not install these packages then. Run after tools/bundle-cli.mjs, whose input
// names the packages.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { notices } from './licence-notices.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const library = '.dist-next';

/** Each module with the package that goes into it. */
const MODULES = {
  'src/hub/hub-client.js': '@huggingface/hub',
  'src/generation/pictures/fetch/public-address.js': 'ipaddr.js',
  'loadgen/metrics/latency-histogram.js': 'hdr-histogram-js',
  'loadgen/arrivals/trace.js': 'csv-parse',
  'cluster/zeromq/kv-event-publisher.js': '@msgpack/msgpack',
};

/** Takes in what the named package has, and leaves other imports of Skein's own modules as they are. */
const onlyPackage = (name) => ({
  name: 'only-package',
  setup({ onResolve }) {
    onResolve({ filter: /./ }, ({ path, importer }) => {
      const isOurs = importer.startsWith(join(root, library));
      return isOurs && path !== name && !path.startsWith(`${name}/`) ? { path, external: true } : undefined;
    });
  },
});

const inputs = [];
for (const [module, name] of Object.entries(MODULES)) {
  const file = join(library, module);
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [file],
    outfile: file,
    allowOverwrite: true,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    plugins: [onlyPackage(name)],
    sourcemap: true,
    // Names stay: they are read in stacks.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  inputs.push(...Object.keys(metafile.inputs));
}
writeFileSync(join(root, library, 'NOTICES.txt'), notices(inputs));
