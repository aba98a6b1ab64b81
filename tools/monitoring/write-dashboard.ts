import { writeFileSync } from 'node:fs';
import { grafanaDashboard } from './dashboard.js';

// Writes grafana-dashboard.json, which Grafana imports:   npx tsx tools/monitoring/write-dashboard.ts
const path = new URL('grafana-dashboard.json', import.meta.url);
writeFileSync(path, `${JSON.stringify(grafanaDashboard(), null, 2)}\n`);
