import { ProblemError } from '@syncline/api';
import { expect, test } from 'vitest';
import { en } from '../words/en.ts';
import { ownText } from './own.ts';

const problem = (code: string) =>
  new ProblemError({ type: '', title: '', detail: '', status: 400, code });

test('who shows the own password is told of it, and not of a user', () => {
  expect(ownText(problem('wrong_password'), en)).toBe(en.account.wrongPassword);
  expect(ownText(problem('conflict'), en)).toBe(en.account.noPassword);
  expect(ownText(problem('rate_limited'), en)).toBe(en.errors.rate_limited);
});
