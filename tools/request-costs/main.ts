// Cost of the most expensive requests to a client that streams: npm run costs -- [PATTERN] [--random 200]
// [--seed 1] [--guides 10] [--write]. PATTERN is that of a route and field, of a store or of what is
// expensive once: --guides: measures clients with hostile guides next to it, for the given number of seconds
// each. With --write the tables go into SECURITY.md. SKEIN_TEST_MODEL names SmolLM2-135M-Instruct; without it
// the demo model is measured.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { writeSection } from '../document-section.js';
import { Random } from '../soak/random.js';
import { megabytes, ms } from './bounds.js';
import { dearStores } from './dear-stores.js';
import { firstTable, measureFirstTimes } from './first-times.js';
import { type GuideCost, guideTable, HOSTILE_GUIDES, PEACEFUL_GUIDE } from './hostile-guides.js';
import type { Cost, DearRequest, MeasuredCost } from './measure.js';
import { CostSession, DEMO_MODEL, smollm2 } from './session.js';
import { costTable } from './table.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    random: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    guides: { type: 'string', default: '0' },
    write: { type: 'boolean' },
  },
});
const pattern = new RegExp(positionals[0] ?? '');
const real = process.env.SKEIN_TEST_MODEL;
/** Pattern of what is expensive only once. */
const FIRST_TIMES = 'for the first time';
const folder = mkdtempSync(join(tmpdir(), 'skein-costs-'));
const cache = process.env.SKEIN_COSTS_CACHE ?? folder;
const session = await CostSession.open(real === undefined ? DEMO_MODEL : smollm2(real), cache, process.env);
const costs: Cost[] = [];
/** Those of requests that take from a full store. */
const ofStores: Cost[] = [];
/** Those of requests that are expensive only once. */
const firsts: Cost[] = [];
const guides: GuideCost[] = [];
let numExceeded = 0;
try {
  for await (const request of wanted()) {
    note(await session.measure(request), request.takenBytes === undefined ? costs : ofStores);
  }
  // The first guide of all starts the thread that follows guides.
  if (Number(values.guides) > 0) await session.beside(PEACEFUL_GUIDE, 1);
  for (const guide of Number(values.guides) > 0 ? [...Object.values(HOSTILE_GUIDES), PEACEFUL_GUIDE] : []) {
    guides.push(await session.beside(guide, Number(values.guides)));
  }
} finally {
  await session.close();
  rmSync(folder, { recursive: true, force: true });
}
if (pattern.test(FIRST_TIMES)) {
  // Adapters of a larger model would take gigabytes.
  for (const measured of await measureFirstTimes(DEMO_MODEL, process.env)) note(measured, firsts);
}
const tables = [
  { section: 'request-costs', of: costs, table: costTable },
  { section: 'store-costs', of: ofStores, table: costTable },
  { section: 'first-costs', of: firsts, table: firstTable },
].flatMap(({ section, of, table }) => (of.length === 0 ? [] : [{ section, text: table(of) }]));
if (guides.length > 0) tables.push({ section: 'hostile-guides', text: guideTable(guides) });
const numMeasured = costs.length + ofStores.length + firsts.length;
console.log(`\n${numExceeded} of ${numMeasured} requests cost more than they may.`);
for (const { section, text } of tables) {
  console.log(`\n${text}`);
  if (values.write) writeSection('SECURITY.md', section, text);
}

/** Keeps a cost for its table, and prints it. */
function note({ cost, exceeded }: MeasuredCost, of: Cost[]): void {
  of.push(cost);
  if (exceeded.length > 0) numExceeded++;
  const { name, status, admissionMs, holdMs, iterationMs, memoryBytes, bodyBytes, answer } = cost;
  const figures = [admissionMs, holdMs, iterationMs].map((value) => ms(value).padStart(8)).join('');
  console.log(
    `${status}${figures}${megabytes(memoryBytes).padStart(9)} of ${megabytes(bodyBytes).padStart(7)}  ${name}`,
  );
  for (const line of [...exceeded, ...(answer === '' ? [] : [answer])]) console.log(`      ${line}`);
}

async function* wanted(): AsyncGenerator<DearRequest> {
  const random = new Random(Number(values.seed));
  for (let i = 0; i < Number(values.random); i++) yield session.requests.random(random);
  if (Number(values.random) > 0 && positionals.length === 0) return;
  for (const [path, fields] of session.fields) {
    for (const field of fields) {
      for (let index = 0; index < session.requests.count(path, field); index++) {
        const request = session.requests.single(path, field, index);
        if (pattern.test(request.name)) yield request;
      }
    }
  }
  for (const store of dearStores()) if (pattern.test(store.name)) yield* await session.fill(store);
}
