// Does through the addon's test hooks what no kernel may do, for main.ts to see that the sanitizers notice:
//
//   node planted.mjs bounds TABLE    multiplies one number more than the array has
//   node planted.mjs alignment       reads floats from an address that is none of a float's
//   node planted.mjs tables          names the tables of kernels
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { kernels } = createRequire(import.meta.url)('node-gyp-build')(root);

const [fault, table = 'scalar'] = process.argv.slice(2);
const length = 64;
if (fault === 'tables') console.log(JSON.stringify(kernels.names()));
else if (fault === 'bounds')
  kernels.scaleRow(table, { x: new Float32Array(length), factor: 2, n: length + 1 });
else if (fault === 'alignment') {
  kernels.scaleRow(table, { x: new Uint8Array(new ArrayBuffer(4 * length + 4), 1), factor: 2, n: length });
} else throw new Error(`no fault is named ${fault}`);
