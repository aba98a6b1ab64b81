/** Classes of characters as Python's str has them; each test takes one character. */

/** White space of str.strip and str.split, as the inside of a class of a regular expression. */
export const SPACES = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

const SPACE = new RegExp(`^[${SPACES}]$`);
const PRINTABLE = /^[^\p{C}\p{Z}]$/u;
/** Digits that are no decimals: superscripts, circled ones. */
const OTHER_DIGITS =
  '\\xb2\\xb3\\xb9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-\\u247c' +
  '\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792' +
  '\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}';
const DIGIT = new RegExp(`^[\\p{Nd}${OTHER_DIGITS}]$`, 'u');
/** Ideographs that stand for numbers. */
const NUMERIC =
  /^[\p{N}㐅㒃㠪㭍一七万三九二五亖亿-什仟仨伍佰億兆兩八六十千-卆卌叁-叄四壱壹幺廾-廿弌-弎弐拾捌柒毛玖百肆萬貮-貳贰阡陆陌陸零參拾兩零六陸什\u{20001}\u{20064}\u{200e2}\u{20121}\u{2092a}\u{20983}\u{2098c}\u{2099c}\u{20aea}\u{20afd}\u{20b19}\u{22390}\u{22998}\u{23b1b}\u{2626d}\u{2f890}]$/u;
const LETTER = /^\p{L}$/u;
const DECIMAL = /^\p{Nd}$/u;
const LOWER = /^\p{Lowercase}$/u;
const UPPER = /^\p{Uppercase}$/u;
const TITLE = /^\p{Lt}$/u;

export const isSpace = (character: string) => SPACE.test(character);
export const isPrintable = (character: string) => character === ' ' || PRINTABLE.test(character);
export const isDigit = (character: string) => DIGIT.test(character);
export const isDecimal = (character: string) => DECIMAL.test(character);
export const isNumeric = (character: string) => NUMERIC.test(character);
export const isLetter = (character: string) => LETTER.test(character);
export const isLower = (character: string) => LOWER.test(character);
export const isUpper = (character: string) => UPPER.test(character);
export const isTitle = (character: string) => TITLE.test(character);
export const isAlphanumeric = (character: string) =>
  isLetter(character) || isNumeric(character) || isDigit(character);
/** Names of variables: what Python takes as an identifier. */
export const isIdentifier = (text: string) => /^[\p{XID_Start}_][\p{XID_Continue}]*$/u.test(text);
