// skein serve with an executor of the test's own: node serve-child.mjs FLAGS_AS_JSON MODULE_URL
import { serve } from '../../../dist/src/commands/serve.js';
import { loadConfig } from '../../../dist/src/config.js';

const [flags, executorModule] = process.argv.slice(2);
await serve({ ...loadConfig({ flags: JSON.parse(flags) }), executorModule });
