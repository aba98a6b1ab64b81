import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { z } from 'zod';
import { ITERATION_STATS, KV_CACHE_EVENT, TOKEN_PIECE } from '../src/contracts/outputs.js';
import { TOKEN_REQUEST } from '../src/contracts/token-request.js';

interface Contract {
  /** Path in docs/schemas. */
  file: string;
  schema: z.ZodType;
  title: string;
  description: string;
  /** Source and interface of the fields' descriptions. */
  described: readonly (readonly [source: string, name: string])[];
}

/** The contracts of InProcessHost, in JSON. */
export const CONTRACTS: readonly Contract[] = [
  {
    file: 'token-request.json',
    schema: TOKEN_REQUEST,
    title: 'TokenRequest',
    description: 'A request to InProcessHost, as JSON: tokenRequestOf(json) makes the request of it.',
    described: [
      ['callbacks/sampling-params.ts', 'SamplingParams'],
      ['callbacks/token-request.ts', 'TokenRequest'],
    ],
  },
  {
    file: 'token-piece.json',
    schema: TOKEN_PIECE,
    title: 'TokenPiece',
    description: 'A piece of an answer, as jsonFormOf(piece) gives it.',
    described: [['callbacks/token-request.ts', 'TokenPiece']],
  },
  {
    file: 'iteration-stats.json',
    schema: ITERATION_STATS,
    title: 'IterationStats',
    description: 'Statistics of an iteration, as onIterationStats gets them.',
    described: [['callbacks/iteration-stats.ts', 'IterationStats']],
  },
  {
    file: 'kv-cache-event.json',
    schema: KV_CACHE_EVENT,
    title: 'KvCacheEvent',
    description: 'A change of the cached blocks, as jsonFormOf(event) gives it.',
    described: [['kvcache/cache-events.ts', 'KvCacheEvent']],
  },
];

/** The text of a contract's file. */
export function schemaText({ schema, title, description, described }: Contract): string {
  const { $schema, properties, ...rest } = z.toJSONSchema(schema) as Record<string, unknown>;
  const about = Object.assign({}, ...described.map(([source, name]) => commentsOf(source, name)));
  const fields = Object.entries(properties as Record<string, object>).map(([name, field]) => {
    const text = about[name];
    return [name, text === undefined ? field : { description: text, ...field }];
  });
  const whole = { $schema, title, description, ...rest, properties: Object.fromEntries(fields) };
  return `${JSON.stringify(whole, null, 2)}\n`;
}

/** The comments of an interface's fields. */
function commentsOf(path: string, name: string): Record<string, string> {
  const text = readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found = source.statements.find((one) => ts.isInterfaceDeclaration(one) && one.name.text === name);
  if (found === undefined) throw new Error(`${path} has no interface ${name}.`);
  const comments: Record<string, string> = {};
  for (const member of (found as ts.InterfaceDeclaration).members) {
    const [comment] = ts.getJSDocCommentsAndTags(member);
    const words = comment === undefined ? undefined : ts.getTextOfJSDocComment(comment.comment);
    if (words !== undefined && member.name !== undefined) {
      comments[member.name.getText(source)] = words.replaceAll(/\s+/g, ' ');
    }
  }
  return comments;
}
