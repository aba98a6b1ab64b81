import fc from 'fast-check';

/** Random templates of the parts that chat templates have, most of which render. */

const one = (...texts: string[]) => fc.constantFrom(...texts);
const filled = (parts: TemplateStringsArray, ...values: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc
    .tuple(...values)
    .map((texts) => parts.reduce((whole, part, i) => whole + (i > 0 ? texts[i - 1] : '') + part, ''));

const LITERALS = one(
  ...[
    "'a b'",
    "' x\\n'",
    "'é🦢'",
    '""',
    "'A-b_c'",
    '0',
    '1',
    '2',
    '-3',
    '2.5',
    '1.0',
    '1e-7',
    '10 ** 20',
    'true',
    'false',
    'none',
  ],
);
const NAMES = one('s', 'n', 'l', 'm', 'u', 't', 'messages', 'ns.v', 'loop.index');
const FILTERS = one(
  ...[
    'upper',
    'lower',
    'trim',
    'title',
    'capitalize',
    'length',
    'list',
    'first',
    'last',
    'string',
    'tojson',
    'int',
    'float',
  ],
  ...[
    'default("d")',
    'default("d", true)',
    'join("-")',
    'replace("a", "bb")',
    'sort',
    'reverse | list',
    'unique | list',
    'sum',
  ],
  ...[
    'map("string") | list',
    'map(attribute="k") | list',
    'select | list',
    'selectattr("k") | list',
    'batch(2) | list',
    'indent(2)',
  ],
  ...[
    'items | list',
    'dictsort',
    'abs',
    'round(1)',
    'max',
    'min',
    'wordcount',
    'truncate(5)',
    'center(7)',
    'tojson(indent=1)',
    'e',
  ],
);
const TESTS = one(
  ...[
    'defined',
    'undefined',
    'none',
    'string',
    'number',
    'mapping',
    'iterable',
    'sequence',
    'boolean',
    'integer',
    'odd',
    'true',
  ],
  ...['in [1, "a b"]', 'eq 1', 'divisibleby 2', 'sameas none', 'lower'],
);
const METHODS = one(
  ...[
    'strip()',
    'lstrip(" x")',
    'split()',
    "split('a')",
    'upper()',
    "replace('a', 'b', 1)",
    "startswith('a')",
    "find('b')",
    'title()',
  ],
  ...[
    'items()',
    "get('k')",
    "get('zz', 7)",
    'keys()',
    "rsplit(' ', 1)",
    'splitlines()',
    "partition('-')",
    "count('a')",
    'isalpha()',
  ],
);

const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const inner = tie('expression');
  const operator = one(
    '+',
    '-',
    '*',
    '/',
    '//',
    '%',
    '~',
    '==',
    '!=',
    '<',
    '>=',
    'and',
    'or',
    'in',
    'not in',
  );
  return {
    expression: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'jinja' },
      LITERALS,
      NAMES,
      filled`(${inner} ${operator} ${inner})`,
      filled`${NAMES} | ${FILTERS}`,
      filled`(${inner}) | ${FILTERS}`,
      filled`(${inner} is ${TESTS})`,
      filled`(not ${inner})`,
      filled`${NAMES}.${METHODS}`,
      filled`${NAMES}[${one('0', '-1', '1:', '::-1', ':2', "'k'", '1:-1')}]`,
      filled`[${inner}, ${inner}]`,
      filled`(${inner}, ${inner})`,
      filled`{'k': ${inner}, 'j': ${inner}}`,
      filled`(${inner} if ${inner} else ${inner})`,
      filled`'%s|%5s' % (${inner}, ${inner})`,
      filled`'{}:{:>4}'.format(${inner}, 's')`,
    ),
  };
});

const SPACES = one('', ' ', '\n', '\n  ', ' text ');
const open = one('{%', '{%-', '{%+');
const close = one('%}', '-%}');

const { body } = fc.letrec<{ body: string; statement: string }>((tie) => {
  const inner = tie('body');
  return {
    body: fc
      .array(tie('statement'), { maxLength: 4, depthIdentifier: 'jinja' })
      .map((parts) => parts.join('')),
    statement: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'jinja' },
      SPACES,
      filled`{{${one('', '-')} ${expression} ${one('', '-')}}}`,
      filled`${open} set ${one('s', 'n', 'x')} = ${expression} ${close}`,
      filled`{% set ns.v = ${expression} %}`,
      filled`${open} if ${expression} ${close}${inner}{% else %}${inner}${open} endif ${close}`,
      filled`${open} for x in ${one('l', 'm', 'messages', 's', '[1, 2]', 'range(3)')} ${close}${inner}{{ loop.index }}{% endfor %}`,
      filled`{% for x in l if x ${close}${inner}{% if loop.last %}{% ${one('break', 'continue')} %}{% endif %}.{% else %}none{% endfor %}`,
      filled`{% macro f(a, b=${expression}) %}${inner}{{ a }}{{ b }}{% endmacro %}{{ f(${expression}) }}`,
      filled`{% set x %}${inner}{% endset %}{{ x | trim }}`,
      filled`{% filter upper %}${inner}{% endfilter %}`,
      filled`{% with s = ${expression} %}${inner}{% endwith %}`,
      filled`{# ${SPACES} #}`,
    ),
  };
});

export const templates: fc.Arbitrary<string> = filled`{% set ns = namespace(v=1) %}${body}${body}${SPACES}`;

/** Variables of the templates. */
export const VARIABLES = {
  s: 'a b\nc',
  n: 7,
  l: [3, 0, 1.5, 2],
  m: { k: 'v', j: [1, null] },
  t: [{ k: 1 }, { k: 0 }, {}],
  messages: [
    { role: 'user', content: ' Hi ' },
    { role: 'assistant', content: null },
  ],
};
