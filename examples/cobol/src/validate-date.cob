*> Tells whether a date is one, and if not, what is wrong with it.
*>
*> It comes as an argument in brackets, [YYYYMMDD]: a COBOL field is padded with blanks, and the
*> brackets show where the text ends.
identification division.
program-id. validate-date.

data division.
working-storage section.
01  argument            pic x(400).
01  bracketed.
    05  opening         pic x.
    05  written.
        10  written-year    pic 9(4).
        10  written-month   pic 9(2).
        10  written-day     pic 9(2).
    05  closing         pic x.
    05  remainder-text  pic x(390).
01  month-names.
    05  filler pic x(27) value "January  February March    ".
    05  filler pic x(27) value "April    May      June     ".
    05  filler pic x(27) value "July     August   September".
    05  filler pic x(27) value "October  November December ".
01  month-table redefines month-names.
    05  month-name      pic x(9) occurs 12.
01  month-lengths       pic x(24) value "312831303130313130313031".
01  length-table redefines month-lengths.
    05  month-length    pic 99 occurs 12.
01  days                pic 99.

procedure division.
main.
    accept argument from argument-value
    move argument to bracketed
    if opening not = "[" or closing not = "]" or remainder-text not = spaces
            or written is not numeric
        display "the date must have eight digits, YYYYMMDD" upon syserr
        move 1 to return-code
        stop run
    end-if
    evaluate true
        when written-year = 0
            display written " is not a valid date: there is no year 0000" upon syserr
            move 1 to return-code
        when written-month < 1 or > 12
            display written " is not a valid date: there is no month " written-month upon syserr
            move 1 to return-code
        when other
            perform check-day
    end-evaluate
    stop run.

check-day.
    move month-length(written-month) to days
    *> A leap year, by Gregory's rule: every fourth, but of the centuries only every fourth.
    if written-month = 2 and function mod(written-year, 4) = 0
            and (function mod(written-year, 100) not = 0 or function mod(written-year, 400) = 0)
        move 29 to days
    end-if
    if written-day < 1 or > days
        display written " is not a valid date: " function trim(month-name(written-month))
            " " written-year " has " days " days" upon syserr
        move 1 to return-code
    else
        display written " is a valid date."
    end-if.

end program validate-date.
