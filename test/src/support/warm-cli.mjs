// Runs the compiled command line many times in one process, one after the other: a start of Node.js takes longer than most commands.
// Each run evaluates the entry again, with arguments, environment and outputs of its own; the modules behind it are loaded once.
// Messages: { args, environment, input, columns } to it; { code, stdout, stderr } from it.
import { Readable } from 'node:stream';

const cli = new URL('../../../dist/bin/cli.js', import.meta.url).href;

/** What a command registers at the process, which a later one must not find. */
const EVENTS = ['unhandledRejection', 'uncaughtException', 'SIGINT', 'SIGTERM', 'SIGHUP'];
let count = 0;

/** Collects what is written to a stream. @returns the text so far */
function capture(stream, columns) {
  let text = '';
  stream.write = (chunk, encoding, done = encoding) => {
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    if (typeof done === 'function') process.nextTick(done);
    return true;
  };
  Object.defineProperties(stream, {
    isTTY: { value: columns !== undefined, configurable: true },
    columns: { value: columns, configurable: true },
  });
  return () => text;
}

async function run({ args, environment, input, columns }) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environment);
  process.argv = [process.execPath, cli, ...args];
  process.exitCode = undefined;
  const stdin = Readable.from(input === '' ? [] : [Buffer.from(input)]);
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  const [stdout, stderr] = [capture(process.stdout, columns), capture(process.stderr, undefined)];
  await import(`${cli}?run=${count++}`);
  const code = process.exitCode ?? 0;
  for (const event of EVENTS) process.removeAllListeners(event);
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error');
  process.exitCode = undefined;
  return { code, stdout: stdout(), stderr: stderr() };
}

// A command that failed ends its process after a moment, whatever it has left open: here another one may be running by then.
process.exit = () => {};
process.on('disconnect', () => process.reallyExit(0));
process.on('message', async (order) => process.send(await run(order)));
