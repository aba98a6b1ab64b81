// Runs modules that come as lines of JSON, and answers each with what it printed, piece by piece, or with its error.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const [folder] = process.argv.slice(2);
const answer = process.stdout.write.bind(process.stdout);
let pieces = [];
process.stdout.write = (text) => {
  if (text !== '') pieces.push(String(text));
  return true;
};

let count = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const path = join(folder, `program-${count++}.mjs`);
  writeFileSync(path, JSON.parse(line).program);
  pieces = [];
  const error = await import(path).then(
    () => null,
    (thrown) => String(thrown?.stack ?? thrown),
  );
  answer(`${JSON.stringify({ pieces, error })}\n`);
}
