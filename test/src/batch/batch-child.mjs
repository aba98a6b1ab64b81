// skein batch with an executor of the test's own: node batch-child.mjs IN OUT OPTIONS_AS_JSON MODULE_URL
import { batch } from '../../../dist/src/commands/batch.js';
import { loadConfig } from '../../../dist/src/settings/config.js';

const [input, output, options, executorModule] = process.argv.slice(2);
process.exitCode = await batch(
  input,
  output,
  {},
  { ...loadConfig({ flags: JSON.parse(options) }), executorModule },
);
