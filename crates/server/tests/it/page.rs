//! The page behind a link, as a browser sees it.

use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::json;

use crate::links::Place;
use crate::support::{TestServer, http};

fn browser() -> Client {
    // Needed by the client library even where no TLS is spoken; the helper sees to it.
    drop(http());
    Client::builder().no_proxy().redirect(Policy::none()).build().unwrap()
}

impl Place {
    async fn page(&self, rest: &str, cookie: Option<&str>) -> Response {
        let request = browser().get(self.server.url(&format!("/s/{rest}")));
        let request = cookie.into_iter().fold(request, |it, cookie| it.header("cookie", cookie));
        request.send().await.unwrap()
    }

    async fn type_in(&self, secret: &str, password: &str) -> Response {
        let request = browser().post(self.server.url(&format!("/s/{secret}")));
        let form = format!("password={}", password.replace('&', "%26").replace(' ', "+"));
        let kind = ("content-type", "application/x-www-form-urlencoded");
        request.header(kind.0, kind.1).body(form).send().await.unwrap()
    }
}

/// Returns a page, after a look at what goes with each.
async fn text(answer: Response, status: StatusCode) -> String {
    assert_eq!(answer.status(), status);
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!(header("referrer-policy"), "no-referrer");
    assert_eq!(header("x-robots-tag"), "noindex, nofollow");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-content-type-options"), "nosniff");
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    let text = answer.text().await.unwrap();
    for word in ["<script", " src=", " onclick", " style=", "http:", "https:"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    text
}

#[tokio::test]
async fn page_of_a_file_says_what_it_is_and_has_it() {
    let place = Place::new(TestServer::start().await).await;
    let request = json!({ "path": "Attic/Photos/one.jpg", "expires_in_seconds": 86_400 });
    let (_, secret) = place.link(request).await;
    let page = text(place.page(&secret, None).await, StatusCode::OK).await;
    assert!(page.contains("<h1>one.jpg</h1>") && page.contains("17 bytes"), "{page}");
    assert!(page.contains("This link ends 2023-11-15 22:13:20 UTC."), "{page}");
    let to = format!("/s/{secret}/content");
    assert!(page.contains(&format!("href=\"{to}\"")), "{page}");
    let file = place.page(&format!("{secret}/content"), None).await;
    assert_eq!(file.headers()["content-disposition"], "attachment; filename*=UTF-8''one.jpg");
    assert_eq!(file.headers()["referrer-policy"], "no-referrer");
    assert_eq!(file.bytes().await.unwrap(), "the first picture");
    // To look at the page is no download.
    assert_eq!(place.links().await[0]["downloads"], 1);
}

#[tokio::test]
async fn page_of_a_folder_leads_down_and_up_and_names_are_text() {
    let place = Place::new(TestServer::start().await).await;
    let evil = "<b title=x>&\"'.txt";
    let address = "%3Cb%20title%3Dx%3E%26%22%27.txt";
    place.make(Method::PUT, &format!("files/Attic/Photos/{address}"), b"x").await;
    let (_, secret) = place.link(json!({ "path": "Attic/Photos" })).await;
    let page = text(place.page(&secret, None).await, StatusCode::OK).await;
    assert!(!page.contains(evil) && !page.contains("<b "), "{page}");
    assert!(page.contains("&lt;b title=x&gt;&amp;&quot;&#39;.txt"), "{page}");
    assert!(page.contains(&format!("href=\"/s/{secret}/content/{address}\"")), "{page}");
    assert!(page.contains(&format!("href=\"/s/{secret}/folders/trip\"")), "{page}");
    for name in ["Attic", "Tax", "sibling", "Diary", "ada"] {
        assert!(!page.contains(name), "{name}: {page}");
    }
    let trip =
        text(place.page(&format!("{secret}/folders/trip"), None).await, StatusCode::OK).await;
    assert!(trip.contains(&format!("<a href=\"/s/{secret}\">Up</a>")), "{trip}");
    assert!(trip.contains(&format!("href=\"/s/{secret}/content/trip/two.jpg\"")), "{trip}");
    let first = place.page(&format!("{secret}?limit=1"), None).await;
    let first = text(first, StatusCode::OK).await;
    let more = first.split("<a href=\"/s/").find_map(|rest| rest.split_once("\">More")).unwrap().0;
    let second = text(place.page(more, None).await, StatusCode::OK).await;
    assert!(second.contains("one.jpg") && !second.contains("title=x"), "{second}");
    for rest in ["/folders/..%2FTax", "/content/../sibling.txt", "/folders/nothing"] {
        let answer = place.page(&format!("{secret}{rest}"), None).await;
        assert!(answer.status().is_client_error(), "{rest}");
        assert!(!answer.text().await.unwrap().contains("private"), "{rest}");
    }
}

#[tokio::test]
async fn page_asks_for_the_password_and_remembers_it() {
    let place = Place::new(TestServer::start().await).await;
    let request = json!({ "path": "Attic/Photos", "password": "open & shut" });
    let (_, secret) = place.link(request).await;
    for rest in ["", "/folders/trip"] {
        let page = text(place.page(&format!("{secret}{rest}"), None).await, StatusCode::OK).await;
        assert!(page.contains(&format!("<form method=\"post\" action=\"/s/{secret}\">")), "{page}");
        assert!(!page.contains("Photos") && !page.contains("two.jpg"), "{page}");
    }
    let locked = place.page(&format!("{secret}/content/one.jpg"), None).await;
    let page = text(locked, StatusCode::UNAUTHORIZED).await;
    assert!(page.contains("The link wants a password."), "{page}");
    let wrong = text(place.type_in(&secret, "open").await, StatusCode::UNAUTHORIZED).await;
    assert!(wrong.contains("The password of the link is wrong.") && wrong.contains("<form"));
    let right = place.type_in(&secret, "open & shut").await;
    assert_eq!(right.status(), StatusCode::SEE_OTHER);
    assert_eq!(right.headers()["location"], format!("/s/{secret}"));
    let cookie = right.headers()["set-cookie"].to_str().unwrap().to_owned();
    let (pass, rest) = cookie.split_once("; ").unwrap();
    assert_eq!(rest, format!("Path=/s/{secret}; Max-Age=3600; HttpOnly; SameSite=Lax"));
    let page = text(place.page(&secret, Some(pass)).await, StatusCode::OK).await;
    assert!(page.contains("<h1>Photos</h1>"), "{page}");
    let file = place.page(&format!("{secret}/content/one.jpg"), Some(pass)).await;
    assert_eq!(file.bytes().await.unwrap(), "the first picture");
    for _ in 0..10 {
        place.type_in(&secret, "wrong").await;
    }
    let limited = place.type_in(&secret, "open & shut").await;
    assert!(limited.headers().contains_key("retry-after"));
    text(limited, StatusCode::TOO_MANY_REQUESTS).await;
}

#[tokio::test]
async fn page_of_a_link_that_leads_nowhere_says_no_more_than_that() {
    let place = Place::new(TestServer::start().await).await;
    let (id, secret) = place.link(json!({ "path": "Attic/Photos" })).await;
    place.take_back(&id).await;
    let ended = text(place.page(&secret, None).await, StatusCode::NOT_FOUND).await;
    assert!(ended.contains("Nothing is behind this link"), "{ended}");
    for other in ["A".repeat(43), "x".to_owned()] {
        assert_eq!(text(place.page(&other, None).await, StatusCode::NOT_FOUND).await, ended);
    }
}
