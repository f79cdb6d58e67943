import type { QueryClient } from '@tanstack/svelte-query';
import type { Place } from './api/client';
import { filterOf } from './pages/flags/filter';
import { pageOf } from './queries/flags';
import type { Route } from './router/match';

type AccountRoute = Route & {
  /** Whether it requires a sign-in. */
  signedIn?: boolean;
};

type TenantRoute = Route & {
  /** Reads what the page shows first, beside the page's files. */
  read?: (client: QueryClient, place: Place, query: URLSearchParams) => void;
};

const readFlags: TenantRoute['read'] = (client, place, query) =>
  void client.prefetchQuery(pageOf(place, filterOf(query), 0));

/** Replaces pages that need a session. */
export const signIn: AccountRoute = { path: '/sign-in', page: () => import('./pages/account/SignInPage.svelte') };

/** Pages before a tenant is chosen. */
export const accountRoutes: AccountRoute[] = [
  signIn,
  { path: '/sign-up', page: () => import('./pages/account/SignUpPage.svelte') },
  { path: '/forgot-password', page: () => import('./pages/account/ForgotPage.svelte') },
  { path: '/reset-password', page: () => import('./pages/account/ResetPage.svelte') },
  { path: '/verify-email', page: () => import('./pages/account/VerifyPage.svelte') },
  { path: '/invitation', page: () => import('./pages/account/InvitationPage.svelte'), signedIn: true },
];

/** Pages of a tenant, inside the shell. usePlace returns their place, useParams the other parameters of the path. */
export const tenantRoutes: TenantRoute[] = [
  { path: 'flags', page: () => import('./pages/flags/FlagsPage.svelte'), read: readFlags },
  { path: 'flags/:key', page: () => import('./pages/flag/FlagPage.svelte') },
  { path: 'segments', page: () => import('./pages/segments/SegmentsPage.svelte') },
  { path: 'segments/:segment', page: () => import('./pages/segment/SegmentPage.svelte') },
  { path: 'playground', page: () => import('./pages/playground/PlaygroundPage.svelte') },
  { path: 'projects', page: () => import('./pages/projects/ProjectsPage.svelte') },
  { path: 'environments', page: () => import('./pages/environments/EnvironmentsPage.svelte') },
  { path: 'flag-rules', page: () => import('./pages/flag-rules/FlagRulesPage.svelte') },
  { path: 'audit', page: () => import('./pages/audit/AuditPage.svelte') },
  { path: 'cleanup', page: () => import('./pages/cleanup/CleanupPage.svelte') },
  { path: 'settings', page: () => import('./pages/tenant/TenantPage.svelte') },
  { path: 'billing', page: () => import('./pages/billing/BillingPage.svelte') },
  { path: 'usage', page: () => import('./pages/usage/UsagePage.svelte') },
  { path: 'profile', page: () => import('./pages/profile/ProfilePage.svelte') },
  { path: 'members', page: () => import('./pages/members/MembersPage.svelte') },
  { path: 'clients', page: () => import('./pages/clients/ClientsPage.svelte') },
  { path: 'keys', page: () => import('./pages/keys/KeysPage.svelte') },
].map((route) => ({ ...route, path: `/t/:tenant/:environment/${route.path}` }));

/** Pages of the platform's staff, outside all tenants. */
export const platformRoutes: Route[] = [
  { path: '/platform/service', page: () => import('./pages/platform/ServicePage.svelte') },
  { path: '/platform/people', page: () => import('./pages/platform/PeoplePage.svelte') },
  { path: '/platform/tenants', page: () => import('./pages/platform/TenantsPage.svelte') },
  { path: '/platform/invitations', page: () => import('./pages/platform/InvitationsPage.svelte') },
  { path: '/platform/audit', page: () => import('./pages/platform/PlatformAuditPage.svelte') },
];
