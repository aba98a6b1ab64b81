// skein serve with an executor of the test's own, and further options of loadModel:
// node serve-child.mjs FLAGS_AS_JSON MODULE_URL OPTIONS_AS_JSON
import { serve } from '../../../dist/src/commands/serve.js';
import { loadConfig } from '../../../dist/src/config.js';

const [flags, executorModule, more] = process.argv.slice(2);
await serve({ ...loadConfig({ flags: JSON.parse(flags) }), executorModule, ...JSON.parse(more) });
