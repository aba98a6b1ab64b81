import { execFileSync } from 'node:child_process';

/** An innermost loop of a function: its instructions as the disassembler writes them, without branches. */
export interface Loop {
  instructions: number;
  lines: string[];
}

interface Line {
  address: number;
  text: string;
}

/** Functions of an object file with their instructions, by their readable names. */
export function functionsOf(object: string): Map<string, Line[]> {
  const text = execFileSync('aarch64-linux-gnu-objdump', ['-dC', '--no-show-raw-insn', object], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  const functions = new Map<string, Line[]>();
  let lines: Line[] = [];
  for (const line of text.split('\n')) {
    const head = /^[0-9a-f]+ <(.*)>:$/.exec(line);
    if (head !== null) {
      lines = [];
      functions.set(head[1]!, lines);
    }
    const body = /^\s*([0-9a-f]+):\t(.*)$/.exec(line);
    if (body !== null) lines.push({ address: Number.parseInt(body[1]!, 16), text: body[2]!.trim() });
  }
  return functions;
}

const isBranch = (text: string) => /^(b|bl|ret|br|blr|cbn?z|tbn?z|b\.\w+)\b/.test(text);
const isCall = (text: string) => /^(bl|blr)\b/.test(text);

/** The loop that has the most of an instruction, and of these the shortest. @throws where none has any */
export function loopWith(lines: readonly Line[], instruction: string): Loop {
  const places = new Map(lines.map(({ address }, i) => [address, i]));
  const named = (text: string) => text.startsWith(`${instruction}\t`) || text.startsWith(`${instruction} `);
  let best = { begin: 0, end: -1, count: 0 };
  for (const [end, { text }] of lines.entries()) {
    const target = isBranch(text) && !isCall(text) ? /([0-9a-f]+) </.exec(text) : null;
    const begin = target === null ? undefined : places.get(Number.parseInt(target[1]!, 16));
    if (begin === undefined || begin > end) continue;
    const count = lines.slice(begin, end + 1).filter((line) => named(line.text)).length;
    const isShorter = end - begin < best.end - best.begin;
    if (count > best.count || (count > 0 && count === best.count && isShorter)) best = { begin, end, count };
  }
  if (best.count === 0) throw new Error(`no loop has ${instruction}`);
  const texts = lines.slice(best.begin, best.end + 1).map(({ text }) => text.replace(/\s*\/\/.*$/, ''));
  return { instructions: texts.length, lines: texts.filter((text) => !isBranch(text)) };
}

/** Times that an instruction stands in a loop. */
export function countOf({ lines }: Loop, instruction: string): number {
  return lines.filter((text) => text.split(/\s/, 1)[0] === instruction).length;
}

/** Cycles of one pass through the loop by LLVM's model of a core, or null where llvm-mca does not run. */
export function cyclesOf(loop: Loop, core: string, program: string): number | null {
  const args = ['-mtriple=aarch64', `-mcpu=${core}`, '-mattr=+i8mm,+bf16,+dotprod', '-iterations=100'];
  try {
    const text = execFileSync(program, args, {
      input: loop.lines.join('\n'),
      encoding: 'utf8',
      stdio: 'pipe',
    });
    const cycles = /^Total Cycles:\s+(\d+)/m.exec(text);
    return cycles === null ? null : Number(cycles[1]) / 100;
  } catch {
    return null;
  }
}
