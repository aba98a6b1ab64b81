// @ts-check
// Many callers, each with one number, and a computation that takes a list: batches in between.      npm install skein
//
//     node batched-service/main.mjs [COUNT]
import { BatchedService } from 'skein';

/** @extends {BatchedService<number, number>} */
class SquareService extends BatchedService {
  constructor(maxBatchSize = 200) {
    super({ maxBatchSize });
  }

  /** @override */
  async start() {
    await super.start(new URL('./squares.mjs', import.meta.url), { msPerFold: 1 });
  }
}

const data = Array.from({ length: Number(process.argv[2] ?? 880) }, (_, i) => i);
const service = new SquareService();
await service.start();

let startMs = performance.now();
for (const number of data.slice(0, 10)) await service.doOne(number);
console.log(`10 one after the other: ${seconds(startMs)} s`);

startMs = performance.now();
const batched = await Promise.all(data.map((number) => service.doOne(number)));
console.log(`${batched.length} at once: ${seconds(startMs)} s`);

const isRight = data.every((number, i) => batched[i] === number ** 2);
console.log(isRight ? 'Every caller has its own result.' : 'Results are mixed up.');
await service.stop();

/** @param {number} sinceMs */
function seconds(sinceMs) {
  return ((performance.now() - sinceMs) / 1000).toFixed(2);
}
