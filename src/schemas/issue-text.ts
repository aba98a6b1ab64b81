import type * as z from 'zod';

/** Names of types for readers of JSON. */
const TYPES: Readonly<Record<string, string>> = {
  int: 'an integer',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** Units in which a list's or a text's length is counted. */
const UNITS: Readonly<Record<string, string>> = { array: ' items', string: ' characters' };

/** Text of what the validator expected, to follow "Invalid value for 'x': ". The schemas' own sentences stay. */
export function issueText(issue: z.core.$ZodIssue): string {
  if (!/^(Invalid (input|option|discriminator)|Too (big|small))/.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${TYPES[issue.expected] ?? issue.expected}`;
    case 'too_big':
      return `expected at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`;
    case 'too_small':
      if (issue.origin in UNITS && Number(issue.minimum) === 1) {
        return `expected ${TYPES[issue.origin]} that is not empty`;
      }
      return `expected at least ${issue.minimum}${UNITS[issue.origin] ?? ''}`;
    case 'invalid_value':
      return choiceText(issue.values);
    case 'invalid_union':
      if ('options' in issue && Array.isArray(issue.options)) return choiceText(issue.options);
      return typesText(issue.errors.map(([first]) => first!));
    default:
      return 'expected something else';
  }
}

/** Text such as `expected a string or a list`, where every alternative fails by its type. */
function typesText(issues: readonly z.core.$ZodIssue[]): string {
  const types = issues.map((issue) => (issue.code === 'invalid_type' ? TYPES[issue.expected] : undefined));
  if (types.length === 0 || types.includes(undefined)) return 'expected something else';
  return `expected ${[...new Set(types)].join(' or ')}`;
}

function choiceText(choices: readonly unknown[]): string {
  const written = choices.map((choice) => (typeof choice === 'string' ? `'${choice}'` : String(choice)));
  return `expected ${written.length === 1 ? '' : 'one of '}${written.join(', ')}`;
}
