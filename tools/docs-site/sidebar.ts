import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Item {
  text: string;
  link: string;
}

/** Groups of pages in the order in which a reader needs them. A page that no group has is in the last one. */
const GROUPS: readonly [title: string, pages: readonly string[]][] = [
  ['Begin', ['README', 'embed', 'server', 'deploy', 'operate', 'dashboard', 'terminal']],
  [
    'The API',
    [
      'api',
      'clients/README',
      'anthropic',
      'ollama',
      'function-calling',
      'structured-output',
      'embeddings',
      'batch',
      'errors',
    ],
  ],
  [
    'Models',
    [
      'models',
      'adapters',
      'speculation',
      'model-repository',
      'ensembles',
      'kserve',
      'grpc',
      'generate',
      'model-server',
      'tensorflow',
    ],
  ],
  ['Hosts', ['host-server', 'tensors', 'logits-post-processors', 'batched-service']],
  ['Many machines', ['queue', 'ranks', 'routers', 'dynamo']],
  ['Measuring', ['load-generator', 'simulate']],
  ['Reference', ['options']],
];

/** The sidebar of the pages in a folder; the texts are the pages' own titles. */
export function sidebar(docs: string) {
  const titleOf = (page: string) =>
    /^# (.+)$/m.exec(readFileSync(join(docs, `${page}.md`), 'utf8'))?.[1] ?? page;
  const item = (page: string): Item => ({
    text: titleOf(page).replaceAll('`', ''),
    link: `/${page.replace(/README$/, '')}`,
  });
  const inFolder = (folder: string) =>
    readdirSync(join(docs, folder))
      .filter((name) => name.endsWith('.md') && name !== 'README.md')
      .map((name) => join(folder, name.slice(0, -3)));
  const grouped = new Set(GROUPS.flatMap(([, pages]) => pages));
  const rest = inFolder('.').filter((page) => !grouped.has(page));
  const groups = GROUPS.map(([text, pages], index) => ({
    text,
    collapsed: index > 1,
    items: [...pages, ...(index === GROUPS.length - 1 ? rest : [])].map(item),
  }));
  return [
    ...groups,
    { text: 'Clients', collapsed: true, items: inFolder('clients').map(item) },
    { text: 'How it works', collapsed: true, items: inFolder('architecture').map(item) },
  ];
}
