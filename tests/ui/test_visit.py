"""What a visitor chose goes along to the next page; an address wins; what does not fit waits."""

from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from serving import visit
    from ui.widgets.linked import linked
    from ui.widgets.visit import current

    name = st.session_state["open"]
    current().open_page(name, st.session_state)
    linked(st.text_area, "Text", value=f"of {name}", key=f"{name}_text", part=visit.TEXT)
    n_layers = {"first": 30, "second": 6, "third": 30}[name]
    linked(st.select_slider, "Layer", range(n_layers), 2, key=f"{name}_layer", part=visit.LAYER)
    default = {"first": 1, "second": 1, "third": 3}[name]
    linked(st.select_slider, "Head", range(9), default, key=f"{name}_head", part=visit.HEAD)


def visitor(**address: str) -> AppTest:
    site = AppTest.from_function(page, default_timeout=60)
    site.session_state["open"] = "first"
    for key, value in address.items():
        site.query_params[key] = value
    return site.run()


def go(site: AppTest, name: str, **address: str) -> AppTest:
    site.session_state["open"] = name
    site.query_params.clear()
    for key, value in address.items():
        site.query_params[key] = value
    return site.run()


def shown(site: AppTest) -> tuple[str, int]:
    assert not site.exception
    return site.text_area[0].value, site.select_slider[0].value


def test_every_page_has_its_own_defaults_until_something_is_chosen():
    site = visitor()
    assert shown(site) == ("of first", 2)
    assert shown(go(site, "second")) == ("of second", 2)


def test_what_was_chosen_goes_along_and_back():
    site = visitor()
    site.text_area[0].set_value("mine").run()
    site.select_slider[0].set_value(4).run()
    assert shown(go(site, "second")) == ("mine", 4)
    site.text_area[0].set_value("another").run()
    assert shown(site) == ("another", 4)
    assert shown(go(site, "first")) == ("another", 4)


def test_a_choice_goes_along_though_the_page_was_left_before_it_ran_again():
    site = visitor()
    site.select_slider[0].set_value(4)  # and at once, in the same run:
    go(site, "third")
    assert [slider.value for slider in site.select_slider] == [4, 1]


def test_whoever_chooses_a_layer_chooses_the_head_beside_it():
    site = visitor()
    assert go(site, "third").select_slider[1].value == 3
    go(site, "first").select_slider[0].set_value(4).run()
    assert go(site, "third").select_slider[1].value == 1


def test_a_page_that_was_opened_is_not_changed_again():
    site = visitor()
    site.select_slider[0].set_value(4).run()
    go(site, "second")
    site.select_slider[0].set_value(1).run()
    assert shown(site.run()) == ("of second", 1)


def test_what_a_page_cannot_take_waits_for_one_that_can():
    site = visitor()
    site.select_slider[0].set_value(17).run()
    assert shown(go(site, "second")) == ("of second", 2)
    assert shown(go(site, "third")) == ("of third", 17)


def test_an_address_wins_and_becomes_the_visitor_s_choice():
    site = visitor(first_layer="5")
    assert shown(site) == ("of first", 5)
    assert shown(go(site, "second", second_text="linked")) == ("linked", 5)
    assert shown(go(site, "third")) == ("linked", 5)
