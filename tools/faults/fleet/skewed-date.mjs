// Loaded into a program of Node.js and its threads in front of their own code: `Date` and `performance.timeOrigin` are wrong by the
// milliseconds that a file has, which may change at any time. Clocks that only measure durations (performance.now, hrtime) are right.
import { readFileSync } from 'node:fs';

const FILE = process.env.FAULTS_CLOCK_FILE;
/** The file is read so often at most. */
const READ_EVERY_MS = 50;

let skewMs = 0;
let readAt = Number.NEGATIVE_INFINITY;

function skew() {
  const now = performance.now();
  if (now - readAt < READ_EVERY_MS) return skewMs;
  readAt = now;
  try {
    skewMs = Number(readFileSync(FILE, 'utf8'));
  } catch {
    // The file goes when the tool ends, maybe before the program.
  }
  return skewMs;
}

const RightDate = Date;
const rightOrigin = performance.timeOrigin;

function SkewedDate(...args) {
  if (new.target === undefined) return new RightDate(SkewedDate.now()).toString();
  return Reflect.construct(RightDate, args.length === 0 ? [SkewedDate.now()] : args, new.target);
}
Object.setPrototypeOf(SkewedDate, RightDate);
SkewedDate.prototype = RightDate.prototype;
Object.defineProperty(RightDate.prototype, 'constructor', {
  value: SkewedDate,
  writable: true,
  configurable: true,
});
SkewedDate.now = () => RightDate.now() + skew();
globalThis.Date = SkewedDate;
Object.defineProperty(performance, 'timeOrigin', { get: () => rightOrigin + skew(), configurable: true });
