import { mkdirSync } from 'node:fs';
import { countOf, type FlagValues, listOf, SIDES_FLAGS } from '../../compare/flags.js';
import { SHAPE_FLAGS, ShapeFile } from '../../compare/shape/shape-file.js';
import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { type BenchOutput, defineBench } from '../bench.js';
import { roundsFlag } from '../flags.js';
import { CASES, type Case, type Chat, drawChat, type Turn } from './chats.js';
import { llamaServer, skeinServer, type TurnServer } from './servers.js';

const ANSWER_TOKENS = 32;

const FLAGS = {
  shapes: {
    argument: 'LIST',
    default: 'qwen3.5-0.8b,qwen3-0.6b',
    help: 'shapes of npm run bench:compare -- --shape; the first one runs in llama-server too (default qwen3.5-0.8b,qwen3-0.6b)',
  },
  type: { ...SHAPE_FLAGS.type, default: 'Q8_0', help: 'type of the matrices (default Q8_0)' },
  tokens: { argument: 'N', default: '8000', help: 'tokens of the first turn (default 8000)' },
  folder: SHAPE_FLAGS.folder,
  'llama-server': { argument: 'PATH', default: '', help: "llama.cpp's server (default: left out)" },
  threads: SIDES_FLAGS.threads,
  ...roundsFlag(3),
} as const;
type Flags = FlagValues<typeof FLAGS>;

interface Side {
  name: string;
  server: TurnServer;
  /** Of each round, by case. */
  turns: Record<Case, Turn>[];
}

/** Second turns of long chats: the time to the first token, and how many tokens of the prompt are computed for it. */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/states.md',
  sections: ['turns'],
  async run(flags, output) {
    const files = listOf(flags.shapes).map((shape) => new ShapeFile({ ...flags, shape }));
    mkdirSync(flags.folder, { recursive: true });
    try {
      await compare(flags, files, output);
    } finally {
      for (const file of files) file.remove();
    }
  },
});

async function compare(
  flags: Flags,
  files: readonly ShapeFile[],
  { progress, report }: BenchOutput,
): Promise<void> {
  const threads = countOf('threads', flags.threads);
  const length = countOf('tokens', flags.tokens);
  for (const file of files) file.write();
  const room = length + 1024;
  const sides: Side[] = [
    ...files.map((file) => ({
      name: `Skein, ${file.name}`,
      server: skeinServer({ file: file.path, cache: file.cache, threads, room }),
      turns: [],
    })),
    ...(flags['llama-server'] === ''
      ? []
      : [
          {
            name: `llama-server, ${files[0]!.name}`,
            server: llamaServer(flags['llama-server'], { file: files[0]!.path, threads, room }),
            turns: [],
          },
        ]),
  ];
  await takeRounds(sides, countOf('rounds', flags.rounds), async (side, round) => {
    const turns = await runChat(side.server, drawChat(length, round));
    side.turns.push(turns);
    const shown = CASES.map((name) => `${name} ${turns[name].seconds.toFixed(2)} s, ${turns[name].computed}`);
    progress(`round ${round + 1}, ${side.name}: ${shown.join('; ')} tokens computed`);
  });
  report({
    section: 'turns',
    conditions: `${threads} threads, random weights in ${flags.type}, a first turn of ${length} tokens with an answer of ${ANSWER_TOKENS}, medians of ${flags.rounds} rounds in turn; seconds to the end of the answer, which has one token but for the first turn, tokens of the prompt that were computed, and how many times as long as on the first server`,
    lines: [
      markdownTable(
        ['', ...sides.map(({ name }) => name)],
        CASES.map((name) => rowOf(name, sides)),
      ),
    ],
  });
}

function rowOf(name: Case, sides: readonly Side[]): string[] {
  const of = (side: Side, value: (turn: Turn) => number) =>
    median(side.turns.map((turns) => value(turns[name])));
  const first = of(sides[0]!, ({ seconds }) => seconds);
  return [
    name,
    ...sides.map((side, index) => {
      const seconds = of(side, (turn) => turn.seconds);
      const ratio = index === 0 ? '' : `, ${(seconds / first).toFixed(2)}`;
      return `${seconds.toFixed(2)} s, ${of(side, ({ computed }) => computed).toFixed(0)} tokens${ratio}`;
    }),
  ];
}

/** One chat, on a server of its own, since each remembers. */
async function runChat(server: TurnServer, chat: Chat): Promise<Record<Case, Turn>> {
  return server.run(async (ask) => {
    const first = await ask(chat.first, ANSWER_TOKENS, chat.answerToken);
    const answer = Array.from({ length: ANSWER_TOKENS }, () => chat.answerToken);
    const next = await ask([...chat.first, ...answer, ...chat.question], 1, chat.answerToken);
    const again = await ask(chat.first, 1, chat.answerToken);
    const edit = (end: number[]) => ask([...chat.first.slice(0, -end.length), ...end], 1, chat.answerToken);
    return {
      'first turn': first,
      'next turn': next,
      'answer again': again,
      'short edit': await edit(chat.shortEdit),
      'long edit': await edit(chat.longEdit),
    };
  });
}
